/**
 * The inputs of a graph that its user would want to set: prompts, seeds, sizes, files. Each has a short name, so that a caller can
 * say `prompt` instead of `6.text`; a name that is taken gets a number.
 */

import { findFileInputs } from '../../../../engine/graph/file-inputs.ts'
import { type Graph, isLink } from '../../../../engine/graph/graph.ts'
import { type DeclaredInput, declaredInputs, readNodeSpec } from '../../../../engine/graph/input-specs.ts'
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import type { JsonValue } from '../../../../lib/json/lossless-json.ts'
import type { Work } from '../../../../lib/waiting/turns.ts'

type ParameterKind = 'text' | 'seed' | 'number' | 'choice' | 'switch' | 'file'

export interface Parameter {
  readonly name: string
  readonly nodeId: string
  readonly input: string
  readonly kind: ParameterKind
  /** As the class declares it: INT, STRING … */
  readonly type: string
  readonly value: JsonValue
  /** What the editor calls the node. */
  readonly title: string | null
}

const MAX_PARAMETERS = 500

const NUMBERS: ReadonlySet<string> = new Set([
  'width',
  'height',
  'length',
  'batch_size',
  'frames',
  'num_frames',
  'fps',
  'frame_rate',
  'duration',
  'seconds',
  'steps',
  'cfg',
  'guidance',
  'denoise',
  'strength',
])
const TEXTS = /^(?:text|prompt|positive|negative|.*_prompt|text_[gl]|tags|lyrics|clip_l|t5xxl)$/

/** In steps: a graph may have thousands of nodes. */
export function* findParameters(graph: Graph, catalog: NodeCatalog): Work<Parameter[]> {
  const found: Parameter[] = []
  const roles = readRoles(graph)
  for (const [nodeId, { classType, inputs, title }] of graph) {
    yield
    const definition = catalog.find(classType)
    if (definition === null) continue
    const files = new Set(findFileInputs(catalog, classType, inputs).map(({ path }) => path))
    const ownTitle = title === definition.display_name ? null : title
    for (const input of declaredInputs(readNodeSpec(definition), inputs)) {
      const value = Object.hasOwn(inputs, input.path) ? inputs[input.path] : undefined
      const kind = value === undefined || isLink(value) ? null : kindOf(input, classType, files)
      if (kind === null || value === undefined) continue
      const name = nameOf(input, { kind, title: ownTitle, role: kind === 'text' ? roles(nodeId) : null })
      const type = typeof input.type === 'string' ? input.type : 'COMBO'
      found.push({ name, nodeId, input: input.path, kind, type, value, title })
      if (found.length === MAX_PARAMETERS) return withFreeNames(found)
    }
  }
  return withFreeNames(found)
}

function kindOf(input: DeclaredInput, classType: string, files: ReadonlySet<string>): ParameterKind | null {
  const { type, name, options } = input
  const isPrimitive = classType.startsWith('Primitive') && name === 'value'
  if (files.has(input.path)) return 'file'
  if (type === 'STRING') return isPrimitive || options.multiline === true || TEXTS.test(name) ? 'text' : null
  if (type === 'INT' && (options.control_after_generate === true || /^(?:noise_)?seed$/.test(name))) return 'seed'
  if (type === 'INT' || type === 'FLOAT') return isPrimitive || NUMBERS.has(name) ? 'number' : null
  if (type === 'BOOLEAN') return isPrimitive ? 'switch' : null
  return classType === 'CustomCombo' && name === 'choice' ? 'choice' : null
}

export type Role = 'positive' | 'negative'

interface Place {
  readonly kind: ParameterKind
  /** The title that its user gave the node. */
  readonly title: string | null
  readonly role: Role | null
}

function nameOf({ name }: DeclaredInput, { kind, title, role }: Place): string {
  if (kind === 'text' && /^(?:text|value|prompt)$/.test(name)) {
    const said = /negative/i.test(title ?? '') ? 'negative' : /positive/i.test(title ?? '') ? 'positive' : role
    if (said === 'negative') return 'negative_prompt'
    if (said === 'positive' || name !== 'value') return 'prompt'
  }
  // A node that only holds a value is best known by its title.
  return name === 'value' ? toName(title ?? '') || name : name
}

const MAX_NAME = 60

function toName(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '')
    .slice(0, MAX_NAME)
}

/** The only text of a graph is its prompt, whatever the class calls it. */
function withFreeNames(parameters: readonly Parameter[]): Parameter[] {
  const texts = parameters.filter(({ kind }) => kind === 'text')
  const [only] = texts.length === 1 && texts[0].name !== 'negative_prompt' ? texts : []
  const taken = new Set<string>()
  // Up to which number each name is taken: counted on from there, many equal names cost as much as many different ones.
  const counts = new Map<string, number>()
  return parameters.map((parameter) => {
    const wanted = parameter === only ? 'prompt' : parameter.name
    let count = counts.get(wanted) ?? 1
    let name = count === 1 ? wanted : `${wanted}_${count}`
    while (taken.has(name)) name = `${wanted}_${++count}`
    counts.set(wanted, count)
    taken.add(name)
    return { ...parameter, name }
  })
}

// Between a text and the sampler lie an encoder and perhaps a few nodes that change what it made.
const MAX_LINKS_FOLLOWED = 200

/** Which of the two inputs of a sampler what a node makes ends up in. */
export function readRoles(graph: Graph): (nodeId: string) => Role | null {
  let found: ReturnType<typeof findUsers> | null = null
  return (start) => {
    found ??= findUsers(graph)
    const users = found
    const queue = [start]
    const visited = new Set(queue)
    let followed = 0
    for (const each of queue) {
      for (const { nodeId, input } of users.get(each) ?? []) {
        if (input === 'positive' || input === 'negative') return input
        if (++followed > MAX_LINKS_FOLLOWED) return null
        // It makes an empty text of any, to stand on the other side.
        if (graph.get(nodeId)?.classType === 'ConditioningZeroOut') continue
        if (!visited.has(nodeId)) queue.push(nodeId)
        visited.add(nodeId)
      }
    }
    return null
  }
}

/** An input that takes what a node makes. */
export interface User {
  readonly nodeId: string
  readonly input: string
  /** Which output it takes. */
  readonly slot: number
}

/** By the id of the node that makes it. */
export type Users = ReadonlyMap<string, readonly User[]>

export function findUsers(graph: Graph): Users {
  const users = new Map<string, User[]>()
  for (const [nodeId, { inputs }] of graph) {
    for (const [input, value] of Object.entries(inputs)) {
      if (!isLink(value)) continue
      const user = { nodeId, input, slot: value[1] }
      const list = users.get(value[0])
      if (list === undefined) users.set(value[0], [user])
      else list.push(user)
    }
  }
  return users
}
