/**
 * The nodes by which workflows for comfy-deploy declare inputs and outputs. They are read as declarations and taken out of the
 * graph: whatever was connected to one gets the plain value, or a loader for a file of the caller. So the workflow runs on engines
 * without these nodes, and nothing is fetched by a node.
 */
import { type Graph, isLink } from '../../../../engine/graph/graph.ts'
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../../lib/json/lossless-json.ts'
import type { User, Users } from '../../workflows/convert/parameters.ts'
import type { ConvertWarning } from '../../workflows/convert/prompt/write-prompt.ts'
import type { FileKind, Place } from '../endpoint.ts'
import { CLASSES, type ExternalClass, OUT, OUTPUTS, type ValueType } from './external-classes.ts'
import { isNumber } from './input-types.ts'

export interface ExternalInput {
  readonly nodeId: string
  /** `input_id`. */
  readonly name: string
  /** `display_name`. */
  readonly title: string
  readonly description: string
  readonly type: ValueType | FileKind
  readonly value: JsonValue
  /** false: its default came over a link, and is none that a caller could see. */
  readonly hasValue: boolean
  readonly minimum: JsonValue
  readonly maximum: JsonValue
  readonly choices: readonly JsonValue[]
  readonly places: readonly Place[]
}

export interface ExternalOutput {
  readonly nodeId: string
  /** `output_id`. */
  readonly name: string
}

interface Externals {
  readonly workflow: JsonObject
  readonly inputs: readonly ExternalInput[]
  readonly outputs: readonly ExternalOutput[]
  readonly warnings: readonly ConvertWarning[]
}

interface Replacing {
  readonly nodes: JsonObject
  readonly catalog: NodeCatalog
  readonly users: Users
  readonly warnings: ConvertWarning[]
  /** Inputs of nodes that are no longer the file's own. */
  readonly copied: Map<string, JsonObject>
}

/** `users`: of the graph as it is. The workflow itself when it has no such node. */
export function replaceExternals(
  workflow: JsonObject,
  graph: Graph,
  { catalog, users }: Pick<Replacing, 'catalog' | 'users'>,
): Externals {
  const external = [...graph].filter(([, { classType }]) => CLASSES.has(classType))
  const outputs = [...graph].filter(([, { classType }]) => OUTPUTS.has(classType))
  if (external.length + outputs.length === 0) return { workflow, inputs: [], outputs: [], warnings: [] }
  const replacing: Replacing = { nodes: { ...workflow }, catalog, users, warnings: [], copied: new Map() }
  const inputs = external.flatMap(([nodeId, { classType }]) => {
    const known = CLASSES.get(classType)
    return known === undefined ? [] : [replaceInput(nodeId, known, replacing)]
  })
  for (const [nodeId, { classType }] of outputs) replaceOutput(nodeId, classType, replacing)
  // One may have taken its default from another, which is gone now.
  const isThere = ({ nodeId }: Place) => Object.hasOwn(replacing.nodes, nodeId)
  return {
    workflow: replacing.nodes,
    inputs: mergeInputs(inputs.map((each) => ({ ...each, places: each.places.filter(isThere) }))),
    outputs: outputs.map(([nodeId, node]) => ({ nodeId, name: textOf(node.inputs, 'output_id') })),
    warnings: replacing.warnings,
  }
}

/** Nodes with one id are one input, if they are of one kind and have one value. */
function mergeInputs(inputs: readonly ExternalInput[]): ExternalInput[] {
  const keyOf = ({ name, type, value, nodeId }: ExternalInput) =>
    stringifyLosslessJson([name, type, value, name === '' ? nodeId : ''])
  return [...Map.groupBy(inputs, keyOf).values()].map((same) => ({
    ...same[0],
    places: same.flatMap(({ places }) => places),
  }))
}

function textOf(inputs: JsonObject, name: string): string {
  const value = Object.hasOwn(inputs, name) ? inputs[name] : ''
  return typeof value === 'string' ? value : ''
}

function inputsAt(nodes: JsonObject, nodeId: string): JsonObject {
  const node = Object.hasOwn(nodes, nodeId) ? nodes[nodeId] : null
  return isJsonObject(node) && isJsonObject(node['inputs']) ? node['inputs'] : {}
}

function replaceInput(nodeId: string, known: ExternalClass, replacing: Replacing): ExternalInput {
  const { nodes } = replacing
  const inputs = inputsAt(nodes, nodeId)
  const given = known.value !== null && Object.hasOwn(inputs, known.value) ? inputs[known.value] : null
  const options = known.type === 'choice' ? readOptions(textOf(inputs, 'options')) : []
  const type = known.type === 'choice' && options.length === 0 ? 'text' : known.type
  const hasValue = fits(type, given)
  // The node for seeds explains itself there, in words that no longer hold.
  const said = textOf(inputs, 'description')
  const boundOf = (name: string) => (Object.hasOwn(inputs, name) && !isLink(inputs[name]) ? inputs[name] : null)
  const minimum = boundOf('min_value')
  // -1 means any, and a graph needs a seed that its sampler takes.
  const isAny = type === 'seed' && typeof given === 'number' && typeof minimum === 'number' && given < minimum
  const value = isAny ? minimum : hasValue ? given : emptyOf(type, inputs)
  return {
    nodeId,
    name: textOf(inputs, 'input_id'),
    title: textOf(inputs, 'display_name'),
    description: said.startsWith('For default value:') ? '' : said,
    type,
    value,
    hasValue,
    minimum,
    maximum: boundOf('max_value'),
    choices: options,
    places: isLoaded(type) ? putLoader(nodeId, { type, value }, replacing) : putValue(nodeId, value, replacing),
  }
}

/** A link, or a value of another type, is no default. */
function fits(type: ExternalInput['type'], value: JsonValue): boolean {
  if (type === 'boolean') return typeof value === 'boolean'
  return type === 'integer' || type === 'number' || type === 'seed' ? isNumber(value) : typeof value === 'string'
}

type Loaded = 'image' | 'video' | 'audio'
const isLoaded = (type: ExternalInput['type']): type is Loaded =>
  type === 'image' || type === 'video' || type === 'audio'

const EXAMPLES: Readonly<Record<Loaded, string>> = { image: 'example.png', video: 'example.mp4', audio: 'example.wav' }

function emptyOf(type: ExternalInput['type'], inputs: JsonObject): JsonValue {
  if (isLoaded(type)) {
    const name = textOf(inputs, 'default_value_url').split(/[?#]/)[0].split('/').at(-1) ?? ''
    return /^[\w.-]{1,100}$/.test(name) ? name : EXAMPLES[type]
  }
  if (type === 'boolean') return false
  return type === 'integer' || type === 'number' || type === 'seed' ? 0 : ''
}

/** One per line, with commas, or a list in JSON. */
function readOptions(written: string): JsonValue[] {
  const trimmed = written.trim().slice(0, 20_000)
  if (trimmed.startsWith('[')) {
    try {
      const list = parseLosslessJson(trimmed)
      if (Array.isArray(list)) return list.filter((each) => typeof each === 'string')
    } catch {
      // Not JSON after all.
    }
  }
  const parts = trimmed.split(trimmed.includes('\n') ? '\n' : ',').map((part) => part.trim())
  return [...new Set(parts)].filter((part) => part !== '').slice(0, 1_000)
}

/** The plain value wherever the node was connected. */
function putValue(nodeId: string, value: JsonValue, replacing: Replacing): Place[] {
  const places = (replacing.users.get(nodeId) ?? []).map(({ nodeId: user, input }) => ({ nodeId: user, input }))
  for (const place of places) setInput(replacing, place, value)
  delete replacing.nodes[nodeId]
  return places
}

/** A node is copied once, however many of its inputs change. */
function setInput(
  { nodes, copied }: Pick<Replacing, 'nodes' | 'copied'>,
  { nodeId, input }: Place,
  value: JsonValue,
): void {
  let inputs = copied.get(nodeId)
  if (inputs === undefined) {
    const node = Object.hasOwn(nodes, nodeId) ? nodes[nodeId] : null
    if (!isJsonObject(node)) return
    inputs = { ...inputsAt(nodes, nodeId) }
    nodes[nodeId] = { ...node, inputs }
    copied.set(nodeId, inputs)
  }
  inputs[input] = value
}

const LOADERS: Readonly<Record<Loaded, readonly [classType: string, input: string]>> = {
  image: ['LoadImage', 'image'],
  video: ['LoadVideo', 'file'],
  audio: ['LoadAudio', 'audio'],
}
/** The outputs of the node for videos, by their place, as those of GetVideoComponents; the others have no counterpart. */
const VIDEO_SLOTS: ReadonlyMap<number, number> = new Map([
  [0, 0],
  [2, 1],
])

/** A loader takes the node's place and id, so that links stay as they are. */
function putLoader(nodeId: string, { type, value }: { type: Loaded; value: JsonValue }, replacing: Replacing): Place[] {
  const { nodes, users } = replacing
  const [classType, input] = LOADERS[type]
  const { _meta: meta } = isJsonObject(nodes[nodeId]) ? nodes[nodeId] : {}
  const more: JsonObject = meta === undefined ? {} : { _meta: meta }
  if (type !== 'video') {
    nodes[nodeId] = { inputs: { [input]: value }, class_type: classType, ...more }
    return [{ nodeId, input }]
  }
  const loaderId = freeId(nodes, `${nodeId}_video`)
  nodes[nodeId] = { inputs: { video: [loaderId, 0] }, class_type: 'GetVideoComponents', ...more }
  nodes[loaderId] = { inputs: { [input]: value }, class_type: classType }
  for (const user of users.get(nodeId) ?? []) moveVideoLink(user, nodeId, replacing)
  return [{ nodeId: loaderId, input }]
}

function moveVideoLink({ nodeId, input, slot }: User, from: string, replacing: Replacing): void {
  const target = VIDEO_SLOTS.get(slot)
  if (target === slot) return
  if (target !== undefined) setInput(replacing, { nodeId, input }, [from, target])
  else {
    const message = `it takes output ${slot} of node ${from}, which a plain loader of videos does not have`
    replacing.warnings.push({ nodeId, input, message })
  }
}

function freeId(nodes: JsonObject, wanted: string): string {
  let id = wanted
  for (let count = 2; Object.hasOwn(nodes, id); count++) id = `${wanted}_${count}`
  return id
}

/** What saves the same on an engine that does not have the node. */
function replaceOutput(nodeId: string, classType: string, { nodes, catalog }: Replacing): void {
  if (catalog.find(classType) !== null) return
  const inputs = inputsAt(nodes, nodeId)
  const { _meta: meta } = isJsonObject(nodes[nodeId]) ? nodes[nodeId] : {}
  const more: JsonObject = meta === undefined ? {} : { _meta: meta }
  const prefix = textOf(inputs, 'filename_prefix') || 'ComfyUI'
  if (classType === `${OUT}Image` && Object.hasOwn(inputs, 'images')) {
    nodes[nodeId] = { inputs: { images: inputs['images'], filename_prefix: prefix }, class_type: 'SaveImage', ...more }
  }
  if (classType === `${OUT}Text` && Object.hasOwn(inputs, 'text') && catalog.find('SaveText') !== null) {
    const saved = { text: inputs['text'], filename_prefix: prefix, format: textOf(inputs, 'file_type') || 'txt' }
    nodes[nodeId] = { inputs: saved, class_type: 'SaveText', ...more }
  }
}
