/**
 * Nodes of packs that no engine describes. A pack may also run code of its own inside of the editor's page; what that code makes of
 * a workflow cannot be known here, and the nodes that need it are refused. Nodes that only decorate the page are left out.
 */
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../../lib/json/lossless-json.ts'
import { refuseConversion } from '../../graph-refusals.ts'
import type { SavedNode } from '../saved/read-saved.ts'
import { type EditorGraph, type EditorNode, findWidget, type Slot, setWidget, type Widget } from './editor-graph.ts'
import type { EditorInput } from './editor-input.ts'
import { clampNumber, isWidgetType, makeWidgets, mergeNumberInputs, settleFloat, settleInteger } from './widgets.ts'

interface BrowserPack {
  readonly pack: string
  /** What the page does with the node, after "which". */
  readonly does: string
}

const SET_GET: BrowserPack = { pack: 'comfyui-kjnodes', does: 'links nodes by name inside of the page' }
const EVERYWHERE: BrowserPack = { pack: 'cg-use-everywhere', does: 'adds links while the page makes the prompt' }
const RGTHREE: BrowserPack = { pack: 'rgthree-comfy', does: 'is resolved by the page' }

const NEEDS_PAGE: ReadonlyMap<string, BrowserPack> = new Map([
  ['SetNode', SET_GET],
  ['GetNode', SET_GET],
  ['Anything Everywhere', EVERYWHERE],
  ['Anything Everywhere?', EVERYWHERE],
  ['Anything Everywhere3', EVERYWHERE],
  ['Prompts Everywhere', EVERYWHERE],
  ['Seed Everywhere', EVERYWHERE],
  ['Reroute (rgthree)', RGTHREE],
  ['Node Collector (rgthree)', RGTHREE],
  ['Random Unmuter (rgthree)', RGTHREE],
])

const DECORATIONS: ReadonlySet<string> = new Set([
  'Label (rgthree)',
  'Bookmark (rgthree)',
  'Fast Muter (rgthree)',
  'Fast Bypasser (rgthree)',
  'Fast Groups Muter (rgthree)',
  'Fast Groups Bypasser (rgthree)',
  'Fast Actions Button (rgthree)',
  'Mute / Bypass Repeater (rgthree)',
  'Mute / Bypass Relay (rgthree)',
])

export function isDecoration(type: string): boolean {
  return DECORATIONS.has(type)
}

/** The pack that a node says it comes from; null for ComfyUI itself and where the file does not say. */
function packOf(properties: JsonObject): string | null {
  const { cnr_id: registered, aux_id: repository } = properties
  if (typeof registered === 'string' && registered !== '') return registered === 'comfy-core' ? null : registered
  return typeof repository === 'string' && repository !== '' ? repository : null
}

export function needsPage(type: string): boolean {
  return NEEDS_PAGE.has(type)
}

export function refuseForPage(id: string, type: string, properties: JsonObject): never {
  const known = NEEDS_PAGE.get(type)
  const pack = packOf(properties) ?? known?.pack ?? 'an unknown pack'
  return refuseConversion(
    'needs_browser_extension',
    `node ${id} (${type}, from ${pack}) ${known?.does ?? 'is resolved by the page'}, which no converter can do: ` +
      'connect the nodes directly, or export the workflow from the editor with "Export (API)"',
    { nodeId: id },
  )
}

/** `hint`: why no engine has the class, where that is known. */
export function refuseUnknown(id: string, type: string, properties: JsonObject, hint: string | null): never {
  const pack = packOf(properties)
  const from = pack === null ? '' : `, from ${pack}`
  const remedy = hint ?? `${pack === null ? 'install its pack' : `install ${pack}`} on an engine, or remove the node`
  return refuseConversion(
    'unknown_class',
    `node ${id} has the class ${JSON.stringify(type)}${from}, which no engine here has, and the file does not say which ` +
      `of its values belongs to which input: ${remedy}`,
    { nodeId: id },
  )
}

/** The values of a class that nobody describes, if the file itself gives them names; else null. */
export function namedWidgets({ values, namedValues, inputs }: SavedNode): Widget[] | null {
  if (isJsonObject(values)) return toWidgets(Object.entries(values))
  if (namedValues !== null) return toWidgets(Object.entries(namedValues))
  if (values === null || values.length === 0) return []
  const names = inputs.flatMap(({ widget }) => widget ?? [])
  return names.length === values.length ? toWidgets(names.map((name, index) => [name, values[index]])) : null
}

/** What becomes of a seed after a run is a widget of the editor, and no input of any class. */
const EDITORS_OWN: ReadonlySet<string> = new Set(['control_after_generate', 'control_filter_list'])

function toWidgets(entries: readonly [string, JsonValue][]): Widget[] {
  return entries.map(([name, value]) => ({
    name,
    kind: 'unknown',
    value,
    isSaved: true,
    isSent: !EDITORS_OWN.has(name),
  }))
}

/**
 * Primitive nodes. One takes the form of the first widget that it is connected to, fits its number to what all its targets
 * take, and puts its value into their widgets whenever a prompt is made. It is no link: the prompt has the value itself.
 */
interface Target {
  readonly node: EditorNode
  readonly slot: Slot
}

function targetsOf(primitive: EditorNode, graph: EditorGraph): (Target | null)[] {
  return [...(primitive.targetLinks ?? [])].map((id) => {
    const link = graph.links.get(id)
    const node = link === undefined ? undefined : graph.nodes.get(link.targetId)
    graph.spend(1 + (node === undefined ? 0 : node.inputs.length + node.widgets.length))
    const slot = node?.inputs.find((input) => input.link === id) ?? (link && node?.inputs[link.targetSlot])
    return node === undefined || slot === undefined ? null : { node, slot }
  })
}

const inputOf = ({ node, slot }: Target): EditorInput | undefined => findWidget(node, slot.widget)?.input

/** Gives the node its widget, with the value of the file. */
export function startPrimitive(primitive: EditorNode, graph: EditorGraph): void {
  const targets = targetsOf(primitive, graph)
  const [first] = targets
  if (first === null || first === undefined) return
  const { slot } = first
  const fake: EditorInput = { name: slot.name, type: slot.type, isOptional: false, options: {}, choices: [] }
  const input = inputOf(first) ?? (slot.widget === null && isWidgetType(slot.type) ? fake : undefined)
  if (input === undefined) return
  const [made] = makeWidgets(input.type, input, { classType: primitive.type, widgets: [] })
  const widget: Widget = made ?? { name: 'value', kind: input.type, value: null, isSaved: true, isSent: true }
  primitive.widgets = [widget]
  const theirs = findWidget(first.node, slot.widget)
  if (theirs !== undefined) setWidget(widget, theirs.value)
  if (primitive.savedValue !== undefined) setWidget(widget, primitive.savedValue)
  if (input.type === 'INT' || input.type === 'FLOAT') fitNumber(widget, input, targets)
}

function fitNumber(widget: Widget, first: EditorInput, targets: readonly (Target | null)[]): void {
  let common = first
  for (const target of targets) {
    const input = target === null ? undefined : inputOf(target)
    const merged = input === undefined ? null : mergeNumberInputs(common, input)
    if (merged === null) continue
    common = merged
    const settle = common.type === 'INT' ? settleInteger(common) : settleFloat(common)
    widget.value = settle(clampNumber(widget.value, common))
  }
}

/** The widgets that got the value. `replaceText`: what the node makes of its value first, when it is set to. */
export function applyPrimitive(
  primitive: EditorNode,
  graph: EditorGraph,
  replaceText: (text: string) => string,
): readonly Widget[] {
  const [widget] = primitive.widgets
  if (widget === undefined) return []
  const isReplaced = primitive.properties['Run widget replace on values'] === true && typeof widget.value === 'string'
  const value = isReplaced ? replaceText(widget.value as string) : widget.value
  return targetsOf(primitive, graph).flatMap((target) => {
    const theirs = target === null ? undefined : findWidget(target.node, target.slot.widget)
    if (theirs === undefined) return []
    setWidget(theirs, value)
    if (theirs.settle !== undefined) theirs.value = theirs.settle(theirs.value)
    return [theirs]
  })
}
