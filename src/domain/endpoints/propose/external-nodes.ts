/**
 * The nodes by which workflows for comfy-deploy declare inputs and outputs. They are read as declarations and taken out of the
 * graph: whatever was connected to one gets the plain value, or a loader for a file of the caller. So the workflow runs on engines
 * without these nodes, and nothing is fetched by a node.
 */
import { type Graph, isLink } from '../../../../engine/graph/graph.ts'
import type { InputSpec, NodeCatalog, NodeDefinition } from '../../../../engine/graph/node-catalog.ts'
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

type ValueType = 'text' | 'boolean' | 'integer' | 'number' | 'seed' | 'choice' | 'weights'

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

interface ExternalClass {
  readonly type: ValueType | FileKind
  /** Which input has the value of the file. */
  readonly value: string | null
  /** Its widgets and sockets in the order of the class: `name:TYPE`, behind the bar the optional ones. */
  readonly inputs: string
  /** The type that it makes. */
  readonly output: string
}

const SAID = 'display_name:STRING description:STRING'
const IN = 'ComfyUIDeployExternal'
const OUT = 'ComfyDeployOutput'
const text: ExternalClass = {
  type: 'text',
  value: 'default_value',
  inputs: `| default_value:STRING ${SAID}`,
  output: 'STRING',
}
const number = (type: ValueType, word: string, bounds = ''): ExternalClass => ({
  type,
  value: 'default_value',
  inputs: `| default_value:${word} ${bounds} ${SAID}`,
  output: word,
})
const bounds = (word: string) => `min_value:${word} max_value:${word}`
const picture = (inputs: string): ExternalClass => ({ type: 'image', value: null, inputs, output: 'IMAGE' })
const SIZES =
  'force_rate:INT force_size:COMBO custom_width:INT custom_height:INT frame_load_cap:INT skip_first_frames:INT select_every_nth:INT'

const CLASSES: ReadonlyMap<string, ExternalClass> = new Map<string, ExternalClass>([
  [`${IN}Text`, text],
  [`${IN}TextAny`, { ...text, output: '*' }],
  [`${IN}TextSingleLine`, text],
  [`${IN}TextList`, text],
  [
    `${IN}Boolean`,
    { type: 'boolean', value: 'default_value', inputs: `default_value:BOOLEAN | ${SAID}`, output: 'BOOLEAN' },
  ],
  [`${IN}Number`, number('number', 'FLOAT')],
  [`${IN}NumberInt`, number('integer', 'INT')],
  [`${IN}NumberSlider`, number('number', 'FLOAT', bounds('FLOAT'))],
  [`${IN}NumberSliderInt`, number('integer', 'INT', bounds('INT'))],
  [
    `${IN}Seed`,
    { type: 'seed', value: 'default_value', inputs: `default_value:INT ${bounds('INT')} | ${SAID}`, output: 'INT' },
  ],
  [
    `${IN}Enum`,
    { type: 'choice', value: 'default_value', inputs: `| default_value:STRING options:STRING ${SAID}`, output: '*' },
  ],
  [
    `${IN}Checkpoint`,
    { type: 'weights', value: 'default_value', inputs: `| default_value:COMBO ${SAID}`, output: '*' },
  ],
  [
    `${IN}Lora`,
    {
      type: 'weights',
      value: 'default_lora_name',
      inputs: `| default_lora_name:COMBO lora_save_name:STRING ${SAID} lora_url:STRING bearer_token:STRING`,
      output: '*',
    },
  ],
  [
    `${IN}FaceModel`,
    {
      type: 'weights',
      value: 'default_face_model_name',
      inputs: `| default_face_model_name:STRING face_model_save_name:STRING ${SAID} face_model_url:STRING`,
      output: '*',
    },
  ],
  [`${IN}Image`, picture(`| default_value:IMAGE ${SAID} default_value_url:STRING`)],
  [`${IN}ImageAlpha`, picture(`| default_value:IMAGE ${SAID}`)],
  [`${IN}ImageBatch`, picture(`images:STRING | default_value:IMAGE ${SAID}`)],
  [`${IN}EXR`, picture(`exr_file:STRING tonemap:COMBO | default_image:IMAGE default_mask:MASK ${SAID}`)],
  [
    `${IN}Video`,
    {
      type: 'video',
      value: 'default_video',
      inputs: `${SIZES} | meta_batch:VHS_BatchManager vae:VAE default_video:COMBO ${SAID} default_value_url:STRING`,
      output: 'IMAGE',
    },
  ],
  [
    `${IN}Vid`,
    {
      type: 'file',
      value: 'default_value',
      inputs: '| meta_batch:VHS_BatchManager default_value:COMBO',
      output: 'STRING',
    },
  ],
  [
    `${IN}Audio`,
    { type: 'audio', value: 'audio_file', inputs: `audio_file:STRING | default_value:AUDIO ${SAID}`, output: 'AUDIO' },
  ],
  [`${IN}File`, { type: 'file', value: null, inputs: `| ${SAID} file_url:STRING`, output: '*' }],
])

const OUTPUTS: ReadonlySet<string> = new Set(['Image', 'Text', 'File', 'EXR'].map((kind) => `${OUT}${kind}`))

/** The catalog and, where no engine has them, the declarations of these nodes: files may list values without names. */
export function withExternalClasses(catalog: NodeCatalog): NodeCatalog {
  return {
    ...catalog,
    find: (classType) => catalog.find(classType) ?? definitionOf(classType),
  }
}

const made = new Map<string, NodeDefinition>()

function definitionOf(classType: string): NodeDefinition | null {
  const known = CLASSES.get(classType)
  if (known === undefined) return null
  let definition = made.get(classType)
  if (definition === undefined) {
    const [required, optional] = known.inputs.split('|').map(readSpecs)
    definition = {
      name: classType,
      display_name: classType,
      category: '',
      input: { required: { input_id: ['STRING', {}], ...required }, optional },
      input_order: { required: ['input_id', ...Object.keys(required)], optional: Object.keys(optional) },
      is_input_list: false,
      output: [known.output],
      output_is_list: [false],
      output_name: [known.output],
      output_node: false,
      has_intermediate_output: false,
    }
    made.set(classType, definition)
  }
  return definition
}

function readSpecs(words: string): Record<string, InputSpec> {
  const pairs = words
    .split(' ')
    .filter(Boolean)
    .map((word) => word.split(':'))
  return Object.fromEntries(
    pairs.map(([name, type]): [string, InputSpec] => [name, type === 'COMBO' ? [type, { options: [] }] : [type, {}]]),
  )
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
  const hasValue = given !== null && !isLink(given)
  const options = known.type === 'choice' ? readOptions(textOf(inputs, 'options')) : []
  const type = known.type === 'choice' && options.length === 0 ? 'text' : known.type
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
