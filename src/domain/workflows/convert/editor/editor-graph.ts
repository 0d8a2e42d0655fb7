/**
 * A workflow as it stands in the editor after loading: nodes with slots and widgets, subgraphs with the nodes that show them.
 * The conversion rebuilds this state, because the prompt is made from it and not from the file. The widgets of a subgraph's
 * inner nodes exist once, however many nodes show the subgraph; what those nodes set themselves are promoted widgets.
 */
import type { NodeDefinition } from '../../../../../engine/graph/node-catalog.ts'
import type { JsonObject, JsonValue } from '../../../../../lib/json/lossless-json.ts'
import type { Spend } from '../../graph-refusals.ts'
import type { EditorInput } from './editor-input.ts'

export interface Widget {
  readonly name: string
  /** The editor's own word: `number`, `combo`, `text`, `customtext`, `toggle`, `button` … */
  readonly kind: string
  value: JsonValue | undefined
  /** It has a place in the saved list of values. */
  readonly isSaved: boolean
  /** Its value is part of the prompt. */
  readonly isSent: boolean
  /** What a combo offers. */
  readonly choices?: () => readonly JsonValue[]
  /** The value that the widget makes of one that it is handed, such as the next multiple of its step. */
  readonly settle?: (value: JsonValue | undefined) => JsonValue | undefined
  /** What else happens when a value is put in. */
  readonly onSet?: () => void
  /** Its value is the same whatever is put in. */
  readonly isFixed?: boolean
  /** Texts like `{day|night}` in it are resolved when the prompt is made. */
  hasWildcards?: boolean
  /** The page itself makes the value when the prompt is made: what it would be. */
  readonly drawnByPage?: string
  /** How the class declares the input behind it. */
  readonly input?: EditorInput
}

export interface Slot {
  readonly name: string
  type: string
  link: string | null
  /** The name of the widget whose value a link would replace. */
  readonly widget: string | null
  /** Of a node that shows a subgraph: the subgraph's own input, and the widget that it shows for it. */
  readonly io?: IoSlot
  promoted?: Widget
}

interface OutputSlot {
  readonly type: string
}

/** Inputs that grow with the links they get. */
export interface AutogrowGroup {
  readonly min: number
  readonly max: number
  readonly prefix: string
  readonly names: readonly string[] | null
  readonly inputs: readonly EditorInput[]
}

/** What stands behind a node. */
export type NodeKind =
  | 'class' // a class that an engine has
  | 'unknown' // a class that no engine has
  | 'subgraph'
  | 'reroute'
  | 'primitive' // hands its value to the widgets that it is connected to
  | 'note'

export interface EditorNode {
  readonly id: string
  readonly type: string
  readonly kind: NodeKind
  readonly mode: number
  readonly properties: JsonObject
  title: string
  inputs: Slot[]
  /** Nodes of one class share the list. */
  outputs: readonly OutputSlot[]
  widgets: Widget[]
  /** No engine has the class, and the file does not name the node's values. */
  isUnreadable?: boolean
  /** null: no input of it grows. */
  autogrow: Map<string, AutogrowGroup> | null
  /** By template: inputs that must agree on a type, with the types that each allows; null: none must. */
  matchTypes: Map<string, Map<string, string>> | null
  /** Where the inputs that must agree stood when they were made: the page looks at these places once more after loading. */
  readonly matchPlaces: number[]
  /** The template that each output follows. */
  outputTemplates: readonly unknown[]
  /** The subgraph that it shows. */
  readonly subgraph: Subgraph | null
  /** Of a Primitive node, whose widget is made only when all nodes are there. */
  readonly savedValue: JsonValue | undefined
  /** Of a Primitive node: the links by which it hands out its value. */
  targetLinks?: Set<string>
  /** Of a Primitive node that gave its place to an input of the subgraph: that input. */
  shownAs?: IoSlot
}

interface Link {
  readonly id: string
  readonly originId: string
  readonly originSlot: number
  readonly targetId: string
  readonly targetSlot: number
}

export interface EditorGraph {
  readonly nodes: Map<string, EditorNode>
  readonly links: Map<string, Link>
  /** Takes how much was looked at, wherever one part of a file is compared with many others. */
  readonly spend: Spend
}

export interface IoSlot {
  readonly name: string
  readonly type: string
  readonly linkIds: string[]
}

export interface Subgraph extends EditorGraph {
  readonly id: string
  readonly name: string
  readonly inputs: IoSlot[]
  readonly outputs: IoSlot[]
  /** Every node that shows it, in any graph. */
  readonly hosts: EditorNode[]
}

export function findWidget(node: EditorNode, name: string | null): Widget | undefined {
  if (name === null) return undefined
  if (node.kind === 'subgraph') return node.inputs.find((slot) => slot.promoted?.name === name)?.promoted
  return node.widgets.find((widget) => widget.name === name)
}

/** The widget behind a slot, if it has one. */
export function widgetOf(node: EditorNode, slot: Slot): Widget | undefined {
  return slot.promoted ?? (node.kind === 'subgraph' ? undefined : findWidget(node, slot.widget))
}

export function setWidget(widget: Widget, value: JsonValue | undefined): void {
  if (widget.isFixed === true) return
  // A text area shows nothing as an empty text.
  const isText = widget.kind === 'customtext' && (value === null || value === undefined)
  widget.value = isText ? '' : value
  widget.onSet?.()
}

/** Removes a link at both ends. */
export function cutLink(graph: EditorGraph, slot: Slot): void {
  const { link: id } = slot
  slot.link = null
  const link = id === null ? undefined : graph.links.get(id)
  if (link === undefined) return
  graph.links.delete(link.id)
  if (link.originSlot === 0) graph.nodes.get(link.originId)?.targetLinks?.delete(link.id)
}

/** The editor's own English words come before those of the server; these are the classes where the two differ. */
const EDITOR_WORDS: Readonly<Record<string, string>> = {
  LTXVConcatAVLatent: 'LTXVConcatAVLatent',
  LTXVSeparateAVLatent: 'LTXVSeparateAVLatent',
  ByteDanceSeedreamNodeV2: 'ByteDance Seedream 4.5 & 5.0',
  ByteDance2ReferenceNode: 'ByteDance Seedance 2.5 Reference to Video',
  IdeogramPImage: 'Ideogram P-Image',
  TopazImageEnhance: 'Topaz Image Enhance',
}

/** What the editor calls a node that its user gave no title. */
export function titleOf({ name, display_name: word }: NodeDefinition): string {
  return Object.hasOwn(EDITOR_WORDS, name) ? EDITOR_WORDS[name] : word || name
}

export const VIRTUAL_TITLES: ReadonlyMap<string, string> = new Map([
  ['Note', 'Note'],
  ['MarkdownNote', 'Markdown Note'],
  ['Reroute', 'Reroute'],
  ['PrimitiveNode', 'Primitive'],
])
