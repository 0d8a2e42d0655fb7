/**
 * A custom node without its code: plain data that crosses threads and is all that the rest of the engine ever sees. The
 * author's definition is checked here, once, when its module is loaded; a mistake stops the start instead of a job.
 */
import type { InputKind, OutputTypes } from './nodes-api.ts'

export interface InputDeclaration {
  readonly name: string
  readonly kind: InputKind
  readonly options: Readonly<Record<string, unknown>>
  readonly choices: readonly string[]
  /** The socket type of the kind `type`, else ''. */
  readonly type: string
  readonly isOptional: boolean
}

export interface OutputDeclaration {
  readonly name: string
  readonly kind: keyof OutputTypes | 'type'
  readonly type: string
}

export interface NodeDeclaration {
  readonly classType: string
  readonly displayName: string
  readonly category: string
  readonly description: string
  readonly inputs: readonly InputDeclaration[]
  readonly outputs: readonly OutputDeclaration[]
  readonly isOutputNode: boolean
  readonly isCached: boolean
}

/** Socket types of the output kinds, as links know them. */
const OUTPUT_TYPES: Readonly<Record<keyof OutputTypes, string>> = {
  image: 'IMAGE',
  mask: 'MASK',
  latent: 'LATENT',
  audio: 'AUDIO',
  int: 'INT',
  float: 'FLOAT',
  string: 'STRING',
  boolean: 'BOOLEAN',
  anything: '*',
}

const isString = (value: unknown): boolean => typeof value === 'string'
const isBoolean = (value: unknown): boolean => typeof value === 'boolean'
type Check = (value: unknown) => boolean
const NUMBERS = (check: Check): Readonly<Record<string, Check>> => ({
  default: check,
  min: check,
  max: check,
  step: check,
})

/** The options of each kind, beside `tooltip`, and what they may be. */
const OPTIONS: Readonly<Record<InputKind, Readonly<Record<string, Check>>>> = {
  image: {},
  mask: {},
  latent: {},
  audio: {},
  int: NUMBERS(Number.isSafeInteger),
  seed: {},
  float: NUMBERS(Number.isFinite),
  string: { default: isString, multiline: isBoolean, placeholder: isString },
  boolean: { default: isBoolean },
  choice: { default: isString },
  anything: {},
  type: {},
}

const DEFINITION_KEYS: ReadonlySet<string> = new Set([
  'classType',
  'displayName',
  'category',
  'description',
  'inputs',
  'outputs',
  'isOutputNode',
  'isCached',
  'run',
])

const MAX_SLOTS = 100
const MAX_TEXT_LENGTH = 10_000
const CLASS_TYPE = /^[A-Za-z0-9_][\w .:+|-]{0,99}$/
// No dots: they stand for members of dynamic inputs.
const SLOT_NAME = /^[A-Za-z_]\w{0,99}$/
const SOCKET_TYPE = /^[A-Z][A-Z0-9_]{0,99}$/

type Members = Readonly<Record<string, unknown>>

function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function readText(definition: Members, key: string, fallback: string): string {
  const value = definition[key] ?? fallback
  if (typeof value === 'string' && value.length <= MAX_TEXT_LENGTH) return value
  throw new Error(`${key} must be a text of at most ${MAX_TEXT_LENGTH} characters`)
}

function readFlag(definition: Members, key: string, fallback: boolean): boolean {
  const value = definition[key] ?? fallback
  if (typeof value === 'boolean') return value
  throw new Error(`${key} must be true or false`)
}

function readSlots(definition: Members, key: 'inputs' | 'outputs'): [string, unknown][] {
  const slots = definition[key] ?? {}
  if (!isMembers(slots)) throw new Error(`${key} must be an object`)
  const entries = Object.entries(slots)
  if (entries.length > MAX_SLOTS) throw new Error(`has ${entries.length} ${key}; at most ${MAX_SLOTS} are allowed`)
  const wrong = entries.find(([name]) => !SLOT_NAME.test(name))
  if (wrong !== undefined)
    throw new Error(`${key}: ${JSON.stringify(wrong[0])} is not a name; use letters, digits and _`)
  return entries
}

function readOptions(kind: InputKind, options: unknown, where: string): Members {
  if (!isMembers(options)) throw new Error(`${where}: options must be an object`)
  const checks: Readonly<Record<string, Check>> = { ...OPTIONS[kind], tooltip: isString }
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined) continue
    if (!Object.hasOwn(checks, key)) {
      throw new Error(`${where}: unknown option ${key}; ${kind} has ${Object.keys(checks).join(', ')}`)
    }
    if (!checks[key](value)) throw new Error(`${where}: option ${key} has a wrong value`)
  }
  refuseContradiction(options, where)
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
}

function refuseContradiction({ default: preset, min, max }: Members, where: string): void {
  const below = (a: unknown, b: unknown) => typeof a === 'number' && typeof b === 'number' && a < b
  if (below(max, min)) throw new Error(`${where}: max is below min`)
  if (below(preset, min) || below(max, preset)) throw new Error(`${where}: default is outside min and max`)
}

function readChoices({ choices }: Members, options: Members, where: string): readonly string[] {
  if (!Array.isArray(choices) || choices.length === 0 || !choices.every(isString)) {
    throw new Error(`${where}: choice needs a list of words`)
  }
  if (options['default'] !== undefined && !choices.includes(options['default'])) {
    throw new Error(`${where}: the default is not among the choices`)
  }
  return [...choices]
}

function readInput([name, input]: [string, unknown]): InputDeclaration {
  const where = `input ${name}`
  if (!isMembers(input) || typeof input['kind'] !== 'string' || !Object.hasOwn(OPTIONS, input['kind'])) {
    throw new Error(`${where}: declare it with a function of atelier/nodes, such as image() or int()`)
  }
  const kind = input['kind'] as InputKind
  const options = readOptions(kind, input['options'] ?? {}, where)
  const choices = kind === 'choice' ? readChoices(input, options, where) : []
  const type = kind === 'type' ? readSocketType(input['type'], where) : ''
  return { name, kind, options, choices, type, isOptional: readFlag(input, 'isOptional', false) }
}

function readSocketType(type: unknown, where: string): string {
  if (typeof type === 'string' && SOCKET_TYPE.test(type)) return type
  throw new Error(`${where}: a socket type is written in capitals, such as PALETTE`)
}

function readOutput([name, kind]: [string, unknown]): OutputDeclaration {
  const where = `output ${name}`
  if (typeof kind === 'string' && Object.hasOwn(OUTPUT_TYPES, kind)) {
    return { name, kind: kind as keyof OutputTypes, type: OUTPUT_TYPES[kind as keyof OutputTypes] }
  }
  if (typeof kind !== 'string' || !SOCKET_TYPE.test(kind)) {
    throw new Error(`${where}: give one of ${Object.keys(OUTPUT_TYPES).join(', ')}, or a type of your own in capitals`)
  }
  return { name, kind: 'type', type: kind }
}

function readClassType({ classType }: Members): string {
  if (typeof classType === 'string' && CLASS_TYPE.test(classType)) return classType
  throw new Error('a node needs a classType of letters, digits and _, such as "Vignette"')
}

/** Throws an Error whose message continues the sentence "the node module … : ". */
export function readDeclaration(definition: unknown): NodeDeclaration {
  if (!isMembers(definition)) throw new Error('defineNode was given no object')
  const classType = readClassType(definition)
  try {
    const unknown = Object.keys(definition).find((key) => !DEFINITION_KEYS.has(key))
    if (unknown !== undefined) {
      throw new Error(`unknown member ${unknown}; there are ${[...DEFINITION_KEYS].join(', ')}`)
    }
    if (typeof definition['run'] !== 'function') throw new Error('run must be a function')
    const outputs = readSlots(definition, 'outputs').map(readOutput)
    const isOutputNode = readFlag(definition, 'isOutputNode', false)
    if (outputs.length === 0 && !isOutputNode)
      throw new Error('it has no outputs and is not an output node: it would never run')
    return {
      classType,
      displayName: readText(definition, 'displayName', classType),
      category: readText(definition, 'category', 'custom'),
      description: readText(definition, 'description', ''),
      inputs: readSlots(definition, 'inputs').map(readInput),
      outputs,
      isOutputNode,
      isCached: readFlag(definition, 'isCached', true),
    }
  } catch (error) {
    throw new Error(`node ${classType}: ${(error as Error).message}`)
  }
}
