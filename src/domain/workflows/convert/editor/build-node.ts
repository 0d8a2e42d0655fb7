/**
 * Builds a node as the editor creates it from its class, before anything of the file is put in: slots, then widgets, and the
 * inputs that depend on others. A dynamic combo brings the inputs of the option that is chosen; an autogrow group has one input
 * more than are connected.
 */
import type { InputSpec, NodeDefinition } from '../../../../../engine/graph/node-catalog.ts'
import type { JsonValue } from '../../../../../lib/json/lossless-json.ts'
import {
  type AutogrowGroup,
  cutLink,
  type EditorGraph,
  type EditorNode,
  type Slot,
  type Widget,
} from './editor-graph.ts'
import { type EditorInput, orderedInputs, toEditorInput } from './editor-input.ts'
import { isWidgetType, makeCombo, makeWidgets } from './widgets.ts'

const AUTOGROW = 'COMFY_AUTOGROW_V3'
const MATCH_TYPE = 'COMFY_MATCHTYPE_V3'
const DYNAMIC_COMBO = 'COMFY_DYNAMICCOMBO_V3'

/** A catalog could bound a group badly, or not at all. */
const MAX_GROWN = 100

type Built = Pick<EditorNode, 'inputs' | 'widgets' | 'outputs' | 'outputTemplates'> & {
  /** Nothing of it depends on values or links: every other node of the class begins as a copy. */
  readonly isPlain: boolean
}

/** A catalog gives the same objects for every file. */
const known = new WeakMap<NodeDefinition, Built>()

export function buildNode(node: EditorNode, definition: NodeDefinition, graph: EditorGraph): void {
  const model = known.get(definition)
  if (model === undefined || !model.isPlain) addInputs(node, definition, graph)
  else {
    node.inputs = model.inputs.map((slot) => ({ ...slot }))
    node.widgets = model.widgets.map((widget) => ({ ...widget }))
  }
  const { outputs, outputTemplates } = model ?? remember(node, definition)
  node.outputs = outputs
  node.outputTemplates = outputTemplates
}

function addInputs(node: EditorNode, definition: NodeDefinition, graph: EditorGraph): void {
  const inputs = orderedInputs(definition)
  for (const input of inputs) addSocket(node, input, graph)
  for (const input of inputs) addWidget(node, input, graph)
}

/** `node`: the first of its class. */
function remember(node: EditorNode, definition: NodeDefinition): Built {
  const templates = definition['output_matchtypes']
  const built = {
    inputs: node.inputs.map((slot) => ({ ...slot })),
    widgets: node.widgets.map((widget) => ({ ...widget })),
    outputs: definition.output.map((type) => ({
      type: typeof type !== 'string' ? 'COMBO' : type === MATCH_TYPE ? '*' : type,
    })),
    outputTemplates: Array.isArray(templates) ? templates : [],
    isPlain:
      node.autogrow === null && node.matchTypes === null && node.widgets.every(({ onSet }) => onSet === undefined),
  }
  known.set(definition, built)
  return built
}

const widgetTypeOf = ({ type, options }: EditorInput): string =>
  typeof options.widgetType === 'string' ? options.widgetType : type

function hasWidget(input: EditorInput): boolean {
  const type = widgetTypeOf(input)
  return !input.options.forceInput && (type === DYNAMIC_COMBO || isWidgetType(type))
}

function addSocket(node: EditorNode, input: EditorInput, graph: EditorGraph): void {
  if (hasWidget(input)) return
  if (input.type === AUTOGROW) addAutogrow(node, input, graph)
  else if (input.type === MATCH_TYPE) addMatchType(node, input, graph)
  else node.inputs.push({ name: input.name, type: input.type, link: null, widget: null })
}

function addWidget(node: EditorNode, input: EditorInput, graph: EditorGraph): void {
  if (!hasWidget(input)) return
  const type = widgetTypeOf(input)
  if (type === DYNAMIC_COMBO) addDynamicCombo(node, input, graph)
  else node.widgets.push(...makeWidgets(type, input, { classType: node.type, widgets: node.widgets }))
  node.inputs.push({ name: input.name, type: input.type, link: null, widget: input.name })
}

function addInput(node: EditorNode, input: EditorInput, graph: EditorGraph): void {
  addSocket(node, input, graph)
  addWidget(node, input, graph)
}

interface MatchTemplate {
  readonly template_id?: unknown
  readonly allowed_types?: unknown
}

function addMatchType(node: EditorNode, input: EditorInput, graph: EditorGraph): void {
  const { template_id: id, allowed_types: allowed } = (input.options.template ?? {}) as MatchTemplate
  if (typeof id !== 'string' || typeof allowed !== 'string') return
  addInput(node, { ...input, type: allowed }, graph)
  node.matchPlaces.push(node.inputs.length - 1)
  node.matchTypes ??= new Map()
  const group = node.matchTypes.get(id) ?? new Map<string, string>()
  node.matchTypes.set(id, group.set(input.name, allowed))
}

interface InputGroup {
  readonly required?: Readonly<Record<string, InputSpec>>
  readonly optional?: Readonly<Record<string, InputSpec>>
}

function groupInputs(group: InputGroup | undefined, nameOf: (name: string) => string): EditorInput[] {
  const read = (specs: InputGroup['required'], isOptional: boolean) =>
    Object.entries(specs ?? {}).map(([name, spec]) => toEditorInput(nameOf(name), spec, isOptional))
  return [...read(group?.required, false), ...read(group?.optional, true)]
}

interface ComboOption {
  readonly key: JsonValue
  readonly inputs: InputGroup
}

function addDynamicCombo(node: EditorNode, input: EditorInput, graph: EditorGraph): void {
  const options = (Array.isArray(input.options.options) ? input.options.options : []) as readonly ComboOption[]
  const keys = options.map(({ key }) => String(key))
  const base = makeCombo({ ...input, type: 'COMBO', choices: keys, options: {} })
  const widget: Widget = {
    ...base,
    input,
    onSet() {
      const option = options.find(({ key }) => String(key) === widget.value)
      chooseOption(node, widget, { option: option ?? null, graph })
    },
  }
  node.widgets.push(widget)
  widget.onSet?.()
}

interface Choosing {
  readonly option: ComboOption | null
  readonly graph: EditorGraph
}

/** Puts the inputs of the chosen option in the place of those of the last; links stay with inputs of the same name. */
function chooseOption(node: EditorNode, combo: Widget, { option, graph }: Choosing): void {
  const prefix = `${combo.name}.`
  const isChild = ({ name }: { readonly name: string }) => name.startsWith(prefix)
  graph.spend(node.inputs.length + node.widgets.length)
  const before = node.inputs.filter(isChild)
  node.inputs = node.inputs.filter((slot) => !isChild(slot))
  removeInPlace(node.widgets, isChild)
  if (option === null) {
    for (const slot of before) cutLink(graph, slot)
    return
  }
  const widgetCount = node.widgets.length
  const inputCount = node.inputs.length
  for (const input of groupInputs(option.inputs, (name) => `${combo.name}.${name}`)) addInput(node, input, graph)
  const addedWidgets = node.widgets.splice(widgetCount)
  node.widgets.splice(node.widgets.indexOf(combo) + 1, 0, ...addedWidgets)
  const own = node.inputs.findIndex(({ name }) => name === combo.name)
  // The combo's own slot is not there yet while the node is being built.
  if (own === -1) return
  // The page prepares texts for alternatives when it makes a node, and misses widgets that come later.
  for (const widget of addedWidgets) widget.hasWildcards = false
  node.inputs.splice(own + 1, 0, ...node.inputs.splice(inputCount))
  for (const slot of before) {
    graph.spend(node.inputs.length)
    // Looked for each time: a link that is put in may make its group grow.
    const now = node.inputs.find(({ name }) => name === slot.name)
    if (now === undefined) cutLink(graph, slot)
    else {
      now.link = slot.link
      noteLink(node, now, graph)
    }
  }
}

/** In place, because the list may be in the middle of being walked. */
function removeInPlace<T>(list: T[], isGone: (item: T) => boolean): void {
  for (let index = list.length - 1; index >= 0; index--) if (isGone(list[index])) list.splice(index, 1)
}

interface AutogrowTemplate {
  readonly input?: InputGroup
  readonly min?: number
  readonly max?: number
  readonly prefix?: string
  readonly names?: readonly string[]
}

function addAutogrow(node: EditorNode, input: EditorInput, graph: EditorGraph): void {
  const {
    input: model,
    min = 1,
    max = MAX_GROWN,
    prefix = '',
    names,
  } = (input.options.template ?? {}) as AutogrowTemplate
  const inputs = groupInputs(model, (name) => name)
  if (inputs.length === 0) return
  const bound = Math.min(names?.length ?? Number(max), MAX_GROWN)
  const group = { min: Number(min), max: bound, prefix, names: names ?? null, inputs }
  node.autogrow ??= new Map()
  node.autogrow.set(input.name, group)
  for (let ordinal = 0; ordinal === 0 || ordinal <= Math.min(group.min, bound); ordinal++) {
    grow(node, input.name, { ordinal, graph })
  }
}

interface Growing {
  readonly ordinal: number
  readonly graph: EditorGraph
}

function nameAt(
  group: AutogrowGroup,
  { groupName, key, ordinal }: { groupName: string; key: string; ordinal: number },
) {
  const base =
    group.names !== null ? group.names[ordinal] : `${group.inputs.length === 1 ? group.prefix : key}${ordinal}`
  return `${groupName}.${base}`
}

function grow(node: EditorNode, groupName: string, { ordinal, graph }: Growing): void {
  const group = node.autogrow?.get(groupName)
  if (group === undefined || ordinal >= group.max) return
  graph.spend(node.inputs.length * (group.inputs.length + 1))
  const added: Slot[] = []
  for (const input of group.inputs) {
    const name = nameAt(group, { groupName, key: input.name, ordinal })
    addInput(node, { ...input, name, isOptional: ordinal >= group.min || input.isOptional }, graph)
    const slot = node.inputs.pop()
    if (slot !== undefined) added.push(slot)
  }
  for (const slot of added) {
    for (const old of node.inputs.filter(({ name }) => name === slot.name)) slot.link ??= old.link
    removeInPlace(node.inputs, ({ name }) => name === slot.name)
  }
  const key = group.inputs[group.inputs.length - 1].name
  const previous = nameAt(group, { groupName, key, ordinal: ordinal - 1 })
  const last = node.inputs.findLastIndex(({ name }) => name.startsWith(previous))
  node.inputs.splice(last === -1 ? node.inputs.length : last + 1, 0, ...added)
}

/** A link that is there while the file is loaded makes its group grow by the next input. */
export function noteLink(node: EditorNode, slot: Slot, graph: EditorGraph): void {
  if (slot.link === null || !graph.links.has(slot.link)) return
  const place = placeInGroup(node, slot)
  if (place !== null) grow(node, place.groupName, { ordinal: place.ordinal + 1, graph })
}

interface PlaceInGroup {
  readonly groupName: string
  readonly group: AutogrowGroup
  readonly ordinal: number
}

const ORDINAL = /\d+$/

/** Which input of a growing group a slot is, and what becomes of a group with a gap in it. */
function placeInGroup(node: EditorNode, slot: Slot): PlaceInGroup | null {
  if (node.autogrow === null) return null
  const groupName = slot.name.slice(0, Math.max(0, slot.name.lastIndexOf('.')))
  const group = node.autogrow.get(groupName)
  if (group === undefined) return null
  const name = slot.name.slice(groupName.length + 1)
  const ordinal = group.names !== null ? group.names.indexOf(name) : Number(ORDINAL.exec(name)?.[0] ?? -1)
  return ordinal < 0 ? null : { groupName, group, ordinal }
}

/**
 * Inputs that grow and must agree on a type are looked at again when the page has loaded. One of them that has no link counts as
 * just disconnected, and the links behind it move up.
 */
export function closeGaps(node: EditorNode): void {
  if (node.autogrow === null || node.matchPlaces.length === 0) return
  const gaps = node.matchPlaces.filter((index) => node.inputs[index]?.link === null)
  for (const index of gaps) closeGap(node, index)
}

function closeGap(node: EditorNode, index: number): void {
  const slot = node.inputs[index]
  const place = slot === undefined ? null : placeInGroup(node, slot)
  if (place === null) return
  const { groupName, group, ordinal } = place
  const stride = group.inputs.length
  if (ordinal + 1 < group.min || stride + index >= node.inputs.length) return
  const members = node.inputs.filter(
    ({ name }) => name.startsWith(`${groupName}.`) && name.lastIndexOf('.') === groupName.length,
  )
  if (members.length % stride !== 0) return
  for (let at = ordinal * stride; at + stride < members.length; at++) members[at].link = members[at + stride].link
  for (const last of members.slice(-stride)) last.link = null
  removeSpare(node, members.slice(group.min * stride), stride)
}

/** One input without a link stays behind the last that has one. */
function removeSpare(node: EditorNode, members: readonly Slot[], stride: number): void {
  let at = members.length - stride
  while (at >= 0 && !members.slice(at, at + stride).some(({ link }) => link !== null)) at -= stride
  const spare = new Set(members.slice(Math.max(0, at + stride * 2)))
  node.inputs = node.inputs.filter((slot) => !spare.has(slot))
}
