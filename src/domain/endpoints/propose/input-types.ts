/**
 * What type an input has, from how the classes at its places declare it. The value of the file is its example, and its default
 * unless it names a file. Where several classes take the value, it must suit all of them.
 */
import type { GraphNode } from '../../../../engine/graph/graph.ts'
import type { DeclaredInput } from '../../../../engine/graph/input-specs.ts'
import { choicesOf } from '../../../../engine/graph/validate/check-node.ts'
import { isJsonObject, type JsonValue, NumberText } from '../../../../lib/json/lossless-json.ts'
import { folderOfInput } from '../../workflows/model-folders.ts'
import { isWeights } from '../../workflows/needs.ts'
import type { ChoiceInput, EndpointInput, FileKind, TextInput } from '../endpoint.ts'

/** What every type of input has. */
type Described = Pick<TextInput, 'name' | 'title' | 'description' | 'places' | 'example'>

/** One value of the graph with its declaration. */
export interface Declared {
  readonly node: GraphNode
  /** What its user calls the node; null: what everybody calls it. */
  readonly title: string | null
  /** null: no engine describes it. */
  readonly input: DeclaredInput | null
  /** What the file is, if the value names one of the caller's. */
  readonly file: FileKind | null
}

// As long as a book chapter; prompts have some hundreds.
export const MAX_TEXT = 100_000
const MAX_CHOICES = 1_000
// Of a list that is not complete anyway.
const MAX_EXAMPLES = 100

export const isNumber = (value: JsonValue): value is number | bigint | NumberText =>
  typeof value === 'number' || typeof value === 'bigint' || value instanceof NumberText

// Beyond these, places of one value are of the same few classes.
const MAX_COMPARED = 100

/** null: not a value that a caller could set. */
export function toInput(described: Described, all: readonly [Declared, ...Declared[]]): EndpointInput | null {
  const [first] = all
  const declared = all.slice(0, MAX_COMPARED)
  const { example } = described
  const isRequired = false
  if (first.file !== null) {
    if (typeof example !== 'string' && example !== null) return null
    return { ...described, type: 'file', isRequired: true, kind: first.file, maxBytes: null, maxPixels: null }
  }
  const type = first.input?.type
  const choices = choicesAt(first, example)
  if (choices !== null) return toChoice({ ...described, isRequired }, declared, choices)
  if (type === 'BOOLEAN' || typeof example === 'boolean') {
    return typeof example === 'boolean' ? { ...described, isRequired, type: 'boolean', default: example } : null
  }
  if (type === 'INT' || type === 'FLOAT' || isNumber(example)) return toNumber(described, declared)
  const isText = type === undefined || (typeof type === 'string' && TEXT.test(type))
  return isText && typeof example === 'string' ? toText(described, declared) : null
}

// Also a colour, and inputs that take anything.
const TEXT = /(?:^|,)(?:STRING|MARKDOWN|TEXTAREA|COLOR|\*)(?:,|$)/

function toText(described: Described, declared: readonly Declared[]): TextInput {
  const { example } = described
  const text = String(example)
  return {
    ...described,
    isRequired: false,
    type: 'text',
    default: text,
    minLength: 0,
    maxLength: Math.max(MAX_TEXT, text.length),
    pattern: null,
    isMultiline: declared.some(({ input }) => input?.options.multiline === true) || text.includes('\n'),
  }
}

const SEED = /^(?:.*_)?seed(?:_num)?$/

/** Of inputs by their last word; a Primitive node says "fixed", and holds any number. */
function isSeed({ name, type, options }: DeclaredInput): boolean {
  return type === 'INT' && (options.control_after_generate === true || SEED.test(name))
}

const isSeedName = (name: string) => SEED.test(name)

function toNumber(described: Described, declared: readonly Declared[]): EndpointInput | null {
  const { example } = described
  if (!isNumber(example)) return null
  const types = declared.map(({ input }) => input?.type)
  const isWhole = isInteger(example) && (types.includes('INT') || !types.includes('FLOAT'))
  if (types.includes('INT') && !isInteger(example)) return null
  const { minimum, maximum } = boundsOf(example, declared)
  const step = exact(declared[0].input?.options.step)
  if (isWhole && (isSeedName(described.name) || declared.some(({ input }) => input !== null && isSeed(input)))) {
    return {
      ...described,
      isRequired: false,
      type: 'seed',
      minimum: minimum ?? 0,
      maximum: maximum ?? Number.MAX_SAFE_INTEGER,
    }
  }
  const whole = { minimum, maximum, step: step === null ? null : Number(step) }
  return { ...described, isRequired: false, type: isWhole ? 'integer' : 'number', default: example, ...whole }
}

export function isInteger(value: JsonValue): boolean {
  if (value instanceof NumberText) return Number.isInteger(value.value)
  return typeof value === 'bigint' || Number.isInteger(value)
}

/** What all classes take, and the value of the file in any case: the editor would send it. */
function boundsOf(example: JsonValue, declared: readonly Declared[]): { minimum: JsonValue; maximum: JsonValue } {
  let minimum: JsonValue = null
  let maximum: JsonValue = null
  for (const { input } of declared) {
    const min = exact(input?.options.min)
    const max = exact(input?.options.max)
    if (min !== null && (minimum === null || compareNumbers(min, minimum) > 0)) minimum = min
    if (max !== null && (maximum === null || compareNumbers(max, maximum) < 0)) maximum = max
  }
  if (minimum !== null && compareNumbers(example, minimum) < 0) minimum = example
  if (maximum !== null && compareNumbers(example, maximum) > 0) maximum = example
  return { minimum, maximum }
}

// Bounds of 64 bits, which a catalog that was read into doubles has one too high.
const ROUNDED = new Map([2n ** 64n, 2n ** 63n].map((bound) => [bound, bound - 1n]))

function exact(bound: unknown): number | bigint | null {
  const number = bound instanceof NumberText ? bound.value : bound
  if (typeof number === 'bigint') return Number.isSafeInteger(Number(number)) ? Number(number) : number
  if (typeof number !== 'number' || !Number.isFinite(number)) return null
  if (Number.isSafeInteger(number) || !Number.isInteger(number) || Math.abs(number) > 1e20) return number
  const whole = BigInt(number)
  return ROUNDED.get(whole) ?? (ROUNDED.has(-whole) ? whole + 1n : whole)
}

/** Below, above or at 0. Whole numbers are compared exactly, however long they are. */
export function compareNumbers(one: JsonValue, other: JsonValue): number {
  const [a, b] = [one, other].map((each) => (each instanceof NumberText ? each.value : each))
  if (typeof a === 'bigint' || typeof b === 'bigint') {
    const isExact = [a, b].every((each) => typeof each === 'bigint' || Number.isInteger(each))
    if (isExact) {
      const [left, right] = [BigInt(a as number), BigInt(b as number)]
      return left < right ? -1 : left > right ? 1 : 0
    }
  }
  return Number(a) - Number(b)
}

const DYNAMIC_COMBO = 'COMFY_DYNAMICCOMBO_V3'

/** null: no list to choose from. */
function choicesAt({ node, input }: Declared, example: JsonValue): readonly JsonValue[] | null {
  if (input === null) return null
  if (input.type === DYNAMIC_COMBO) return keysThatFit(input, node)
  if (node.classType === 'CustomCombo' && input.path === 'choice') {
    return Object.entries(node.inputs).flatMap(([name, value]) =>
      /^option\d+$/.test(name) && value !== '' ? [value] : [],
    )
  }
  const choices = choicesOf(input)
  return choices === null || isJsonObject(example) ? null : choices
}

interface ComboOption {
  readonly key: JsonValue
  readonly inputs?: {
    readonly required?: Readonly<Record<string, readonly [unknown, Readonly<Record<string, unknown>>?]>>
  }
}

/** The options whose own inputs the node has already: of another, the values would be missing. */
function keysThatFit({ path, options }: DeclaredInput, node: GraphNode): JsonValue[] {
  const listed = (Array.isArray(options.options) ? options.options : []) as readonly ComboOption[]
  const fits = ({ inputs }: ComboOption) =>
    Object.entries(inputs?.required ?? {}).every(([name, [type, more]]) => {
      const value = Object.hasOwn(node.inputs, `${path}.${name}`) ? node.inputs[`${path}.${name}`] : undefined
      const choices = Array.isArray(type) ? type : type === 'COMBO' ? more?.['options'] : null
      if (typeof type === 'string' && /^COMFY_(?:AUTOGROW|DYNAMICSLOT)/.test(type)) return true
      return value !== undefined && (!Array.isArray(choices) || typeof value !== 'string' || choices.includes(value))
    })
  return listed.filter(fits).map(({ key }) => key)
}

const isScalar = (value: JsonValue) => typeof value === 'string' || typeof value === 'boolean' || isNumber(value)

function toChoice(
  described: Described & { readonly isRequired: boolean },
  declared: readonly Declared[],
  listed: readonly JsonValue[],
): ChoiceInput | null {
  const { example } = described
  if (!isScalar(example)) return null
  const others = declared.slice(1).map((each) => choicesAt(each, example))
  const common = listed.filter(
    (choice) => isScalar(choice) && others.every((list) => list === null || list.includes(choice)),
  )
  const isKnown = common.includes(example)
  const isFiles =
    declared.some((each) => namesWeights(each, example)) ||
    common.some((name) => typeof name === 'string' && isWeights(name))
  const isRemote = declared.some(({ input }) => Boolean(input?.options.remote))
  const isOpen = isFiles || isRemote || common.length === 0 || common.length > MAX_CHOICES
  // The editor would send the value of the file even if the class does not list it.
  const choices = isKnown ? common : [example, ...common]
  return {
    ...described,
    type: 'choice',
    default: example,
    choices: isOpen ? choices.slice(0, MAX_EXAMPLES) : choices,
    isOpen,
  }
}

/** Whether a value is picked from the files of weights on the engines. */
export function namesWeights({ node, input }: Declared, value: JsonValue): boolean {
  if (typeof value !== 'string') return false
  return isWeights(value) || (input !== null && folderOfInput(node.classType, input.path) !== null)
}
