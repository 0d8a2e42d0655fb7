/**
 * Puts what the file says of a node into the node that was built from its class. The class decides which inputs and widgets there
 * are; the file gives links by the name of the input, and values by the place of the widget. Inputs that only the file has stay:
 * an autogrow group has such, and so have classes whose declaration has changed since.
 */
import type { NodeDefinition } from '../../../../../engine/graph/node-catalog.ts'
import { isJsonObject, type JsonValue } from '../../../../../lib/json/lossless-json.ts'
import type { SavedInput, SavedNode } from '../saved/read-saved.ts'
import { buildNode, noteLink } from './build-node.ts'
import { type EditorGraph, type EditorNode, type Slot, setWidget, titleOf, type Widget } from './editor-graph.ts'
import { declaredInputs } from './editor-input.ts'

/** Puts slots and values of the file into a node that has just been made. */
export function configureNode(node: EditorNode, saved: SavedNode, graph: EditorGraph): void {
  mergeSlots(node, saved)
  // The list may grow while it is walked.
  for (let index = 0; index < node.inputs.length; index++) noteLink(node, node.inputs[index], graph)
  putValues(node, saved.values ?? saved.namedValues)
}

export function buildFromClass(node: EditorNode, definition: NodeDefinition, graph: EditorGraph): void {
  buildNode(node, definition, graph)
  if (node.title === '') node.title = titleOf(definition)
  if (node.type === 'CustomCombo') addOptionWidgets(node)
}

export function toSlot({ name, type, link, widget }: SavedInput): Slot {
  return { name, type, link, widget }
}

function mergeSlots(node: EditorNode, saved: SavedNode): void {
  if (saved.inputs.length > 0) {
    const byName = new Map(saved.inputs.map((input) => [input.name, input]))
    const defined = new Set<string>()
    for (const slot of node.inputs) {
      slot.link = byName.get(slot.name)?.link ?? null
      defined.add(slot.name)
    }
    for (const input of saved.inputs) if (!defined.has(input.name)) node.inputs.push(toSlot(input))
  }
  const further = saved.outputs.slice(node.outputs.length)
  if (further.length > 0) node.outputs = [...node.outputs, ...further.map(({ type }) => ({ type }))]
}

/** By place, or by name where a pack saves them so. */
function putValues(node: EditorNode, values: SavedNode['values']): void {
  if (values === null) return
  if (isJsonObject(values)) {
    for (const widget of [...node.widgets]) {
      if (widget.isSaved && Object.hasOwn(values, widget.name)) setWidget(widget, values[widget.name])
    }
    return
  }
  let next = 0
  // Putting a value in may bring further widgets behind it, which are next in the file, too.
  for (let index = 0; index < node.widgets.length && next < values.length; index++) {
    if (node.widgets[index].isSaved) setWidget(node.widgets[index], values[next++])
  }
}

/**
 * Old editors kept a value for inputs that only take links, which have no widget any more. If the number of values is the one
 * that they would have saved, those are dropped.
 */
export function withoutForcedInputs(saved: SavedNode, node: EditorNode, definition: NodeDefinition): SavedNode {
  const { values } = saved
  if (!Array.isArray(values) || !hasForcedInputs(definition)) return saved
  const names = new Set(node.widgets.map(({ name }) => name))
  const wasForced = [...declaredInputs(definition).values()]
    .filter(({ name, options }) => names.has(name) || options.forceInput)
    .flatMap(({ options }) => {
      const isForced = Boolean(options.forceInput)
      return options.control_after_generate ? [isForced, false] : [isForced]
    })
  if (wasForced.length !== values.length) return saved
  return { ...saved, values: values.filter((_, index) => !wasForced[index]) }
}

const forcing = new WeakMap<NodeDefinition, boolean>()

function hasForcedInputs(definition: NodeDefinition): boolean {
  let isForcing = forcing.get(definition)
  if (isForcing === undefined) {
    isForcing = [...declaredInputs(definition).values()].some(({ options }) => Boolean(options.forceInput))
    forcing.set(definition, isForcing)
  }
  return isForcing
}

/**
 * The page gives this class a list of texts to choose from: one widget for each, and an empty one at the end, plus the index of
 * the text that is chosen.
 */
function addOptionWidgets(node: EditorNode): void {
  const [built] = node.widgets
  if (built === undefined) return
  const options: Widget[] = []
  const choice: Widget = {
    ...built,
    choices: () => options.map(({ value }) => value).filter(Boolean) as JsonValue[],
  }
  const index: Widget = {
    name: 'index',
    kind: 'hidden',
    isSaved: true,
    isSent: true,
    isFixed: true,
    get value() {
      return options.findIndex(({ value }) => value === choice.value)
    },
  }
  node.widgets = [choice, index]
  const addOption = () => {
    const option: Widget = {
      name: `option${options.length + 1}`,
      kind: 'text',
      value: '',
      isSaved: true,
      isSent: true,
      onSet() {
        if (options.at(-1) === option && option.value) addOption()
      },
    }
    options.push(option)
    node.widgets.push(option)
  }
  addOption()
}
