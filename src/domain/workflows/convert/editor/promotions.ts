/**
 * Promoted widgets: a node that shows a subgraph has, for each input of the subgraph that leads to a widget, a widget with a
 * value of its own.
 */
import { isJsonObject, type JsonValue } from '../../../../../lib/json/lossless-json.ts'
import type { SavedNode } from '../saved/saved-workflow.ts'
import {
  type EditorNode,
  type IoSlot,
  type Slot,
  type Subgraph,
  setWidget,
  type Widget,
  widgetOf,
} from './editor-graph.ts'

interface Target {
  readonly node: EditorNode
  readonly slot: Slot
  readonly widget: Widget | undefined
}

/** Where the links of a subgraph's input lead. */
export function* targetsOf(subgraph: Subgraph, io: IoSlot): Generator<Target> {
  for (const id of io.linkIds) {
    const link = subgraph.links.get(id)
    const node = link === undefined ? undefined : subgraph.nodes.get(link.targetId)
    subgraph.spend(1 + (node === undefined ? 0 : node.inputs.length + node.widgets.length))
    const slot = node?.inputs.find((input) => input.link === id)
    if (node !== undefined && slot !== undefined) yield { node, slot, widget: widgetOf(node, slot) }
  }
}

/** Found once for all nodes that show the subgraph; anew when the input has got further links. */
const found = new WeakMap<IoSlot, { readonly links: number; readonly widget: Widget | null }>()

function findTarget(subgraph: Subgraph, io: IoSlot): Widget | null {
  const known = found.get(io)
  if (known?.links === io.linkIds.length) return known.widget
  let widget: Widget | null = null
  for (const target of targetsOf(subgraph, io)) {
    widget = target.widget ?? null
    if (widget !== null) break
  }
  found.set(io, { links: io.linkIds.length, widget })
  return widget
}

/** Gives the slot a widget, if the input leads to one. */
export function promote(subgraph: Subgraph, slot: Slot): void {
  const widget = slot.io === undefined ? null : findTarget(subgraph, slot.io)
  if (widget !== null && slot.io !== undefined) slot.promoted = showWidget(widget, slot.io.name)
}

function showWidget({ kind, value, choices, input }: Widget, name: string): Widget {
  return { name, kind, value, isSaved: true, isSent: true, ...(choices && { choices }), ...(input && { input }) }
}

/** The values of the file, in the order of the inputs that have a widget. */
export function putPromotedValues(host: EditorNode, { values, namedValues }: SavedNode): void {
  const promoted = host.inputs.flatMap(({ promoted: widget }) => (widget === undefined ? [] : [widget]))
  const quarantined = readQuarantine(host)
  promoted.forEach((widget, index) => {
    const isNamed = namedValues !== null && values === null && Object.hasOwn(namedValues, widget.name)
    const named = isNamed ? namedValues[widget.name] : undefined
    const value = quarantined.get(widget.name) ?? (Array.isArray(values) ? values[index] : named)
    if (value !== undefined) setWidget(widget, value)
  })
}

/** Values that the editor could not place when it turned a file into the present form, and keeps by the name of the input. */
function readQuarantine(host: EditorNode): Map<string, JsonValue> {
  const found = new Map<string, JsonValue>()
  const entries = host.properties['proxyWidgetErrorQuarantine']
  for (const entry of Array.isArray(entries) ? entries.toReversed() : []) {
    const { originalEntry: original, hostValue: value } = isJsonObject(entry) ? entry : {}
    if (!Array.isArray(original) || original[0] !== '-1' || typeof original[1] !== 'string') continue
    if (value !== undefined && value !== null) found.set(original[1], value)
  }
  return found
}
