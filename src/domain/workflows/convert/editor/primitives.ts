/**
 * Primitive nodes. One takes the form of the first widget that it is connected to, fits its number to what all its targets
 * take, and puts its value into their widgets whenever a prompt is made. It is no link: the prompt has the value itself.
 */
import { type EditorGraph, type EditorNode, findWidget, type Slot, setWidget, type Widget } from './editor-graph.ts'
import type { EditorInput } from './editor-input.ts'
import { clampNumber, isWidgetType, makeWidgets, mergeNumberInputs, settleFloat, settleInteger } from './widgets.ts'

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

/** `replaceText`: what the node makes of its value first, when it is set to. */
export function applyPrimitive(primitive: EditorNode, graph: EditorGraph, replaceText: (text: string) => string): void {
  const [widget] = primitive.widgets
  if (widget === undefined) return
  const isReplaced = primitive.properties['Run widget replace on values'] === true && typeof widget.value === 'string'
  const value = isReplaced ? replaceText(widget.value as string) : widget.value
  for (const target of targetsOf(primitive, graph)) {
    const theirs = target === null ? undefined : findWidget(target.node, target.slot.widget)
    if (theirs === undefined) continue
    setWidget(theirs, value)
    if (theirs.settle !== undefined) theirs.value = theirs.settle(theirs.value)
  }
}
