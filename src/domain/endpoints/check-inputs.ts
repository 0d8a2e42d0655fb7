/**
 * The inputs of a call against those of the version: every mistake at once, each under the name of its input. No value is quietly
 * replaced by another one; what is left out, or null, has its default.
 */
import { type JsonObject, type JsonValue, keepNumber, NumberText } from '../../../lib/json/lossless-json.ts'
import { closestWord } from '../../../lib/text/closest-word.ts'
import type {
  ChoiceInput,
  EndpointInput,
  FileInput,
  InputProblem,
  NumberInput,
  SeedInput,
  TextInput,
} from './endpoint.ts'
import { toMatcher } from './pattern-check.ts'

interface CheckedInputs {
  /** Files excepted. */
  readonly values: ReadonlyMap<string, JsonValue>
  readonly files: readonly { readonly input: FileInput; readonly value: JsonValue }[]
  readonly problems: readonly InputProblem[]
}

interface CheckOptions {
  /** Forms and tables have texts only: "5" is a number there. */
  readonly areTexts?: boolean
  /** As Math.random, for seeds. */
  readonly random: () => number
}

const MAX_PROBLEMS = 100
const MAX_SHOWN_CHOICES = 50
// A random seed is one that every language can read exactly.
const MAX_RANDOM_SEED = 2n ** 53n - 1n

export function checkInputs(
  inputs: readonly EndpointInput[],
  given: JsonObject,
  { areTexts = false, random }: CheckOptions,
): CheckedInputs {
  const values = new Map<string, JsonValue>()
  const files: { input: FileInput; value: JsonValue }[] = []
  const problems: InputProblem[] = [...unknownNames(inputs, given)]
  for (const input of inputs) {
    const { name } = input
    const sent = Object.hasOwn(given, name) ? given[name] : null
    if (sent === null) {
      if (input.isRequired) problems.push({ name, reason: 'missing', message: `${name} is required` })
      else if (input.type === 'seed') values.set(name, drawSeed(input, random))
      else if (input.type !== 'file') values.set(name, input.default)
      continue
    }
    if (input.type === 'file') {
      files.push({ input, value: sent })
      continue
    }
    const value = areTexts && typeof sent === 'string' ? fromText(input, sent) : sent
    if (input.type === 'seed' && isMinusOne(value)) {
      values.set(name, drawSeed(input, random))
      continue
    }
    const found = judge(input, value)
    if (found === null) values.set(name, toExact(input, value))
    else problems.push({ name, ...found, message: `${name} ${found.message}` })
  }
  return { values, files, problems: problems.slice(0, MAX_PROBLEMS) }
}

function* unknownNames(inputs: readonly EndpointInput[], given: JsonObject): Generator<InputProblem> {
  const known = new Set(inputs.map(({ name }) => name))
  let count = 0
  for (const name of Object.keys(given)) {
    if (known.has(name)) continue
    if (++count > MAX_PROBLEMS) return
    const meant = closestWord(name, known)
    const hint = meant === null ? `; this endpoint has ${listNames(known)}` : `; did you mean ${meant}?`
    const shown = name.slice(0, 64).toWellFormed()
    yield { name: shown, reason: 'unknown', message: `${shown} is no input of this endpoint${hint}` }
  }
}

function listNames(names: ReadonlySet<string>): string {
  if (names.size === 0) return 'no inputs'
  const shown = [...names].slice(0, 20)
  return `${shown.join(', ')}${names.size > shown.length ? ', …' : ''}`
}

type Found = Omit<InputProblem, 'name'> | null

function judge(input: Exclude<EndpointInput, FileInput>, value: JsonValue): Found {
  switch (input.type) {
    case 'text':
      return judgeText(input, value)
    case 'boolean':
      return typeof value === 'boolean' ? null : { reason: 'wrong_type', message: 'must be true or false' }
    case 'choice':
      return judgeChoice(input, value)
    case 'integer':
    case 'number':
    case 'seed':
      return judgeNumber(input, value)
  }
}

function judgeText({ minLength, maxLength, pattern }: TextInput, value: JsonValue): Found {
  if (typeof value !== 'string') return { reason: 'wrong_type', message: 'must be a text' }
  if (value.length > maxLength)
    return { reason: 'too_long', message: `must have at most ${maxLength} characters`, maximum: maxLength }
  if (value.length < minLength)
    return { reason: 'too_short', message: `must have at least ${minLength} characters`, minimum: minLength }
  if (pattern !== null && !toMatcher(pattern).test(value))
    return { reason: 'no_match', message: `must match ${pattern}` }
  return null
}

function judgeChoice({ choices, isOpen }: ChoiceInput, value: JsonValue): Found {
  const isPlain = ['string', 'number', 'boolean'].includes(typeof value)
  // What engines have now is known when the job is submitted.
  if (isOpen && typeof value === 'string') return null
  if (isPlain && choices.includes(value)) return null
  const allowed = choices.slice(0, MAX_SHOWN_CHOICES)
  const more = choices.length > allowed.length ? ', …' : ''
  return { reason: 'not_one_of', message: `must be one of ${allowed.map(String).join(', ')}${more}`, allowed }
}

function judgeNumber(input: NumberInput | SeedInput, value: JsonValue): Found {
  const { minimum, maximum } = input
  const isWhole = input.type !== 'number'
  const exact = isWhole ? toInteger(value) : toFinite(value)
  if (exact === null) return { reason: 'wrong_type', message: isWhole ? 'must be a whole number' : 'must be a number' }
  const [low, high] = [minimum, maximum].map((bound) => (isWhole ? toInteger(bound) : toFinite(bound)))
  if (low !== null && exact < low) return { reason: 'too_small', message: `must be at least ${low}`, minimum }
  if (high !== null && exact > high) return { reason: 'too_large', message: `must be at most ${high}`, maximum }
  return null
}

const DIGITS = /^-?\d{1,30}$/

/** Also of a text of digits that stands for a number which not every language can write as such. */
function toInteger(value: JsonValue): bigint | null {
  if (typeof value === 'bigint') return value
  if (typeof value === 'string')
    return DIGITS.test(value) && !Number.isSafeInteger(Number(value)) ? BigInt(value) : null
  const number = value instanceof NumberText ? value.value : value
  return typeof number === 'number' && Number.isSafeInteger(number) ? BigInt(number) : null
}

function toFinite(value: JsonValue): number | null {
  const number = value instanceof NumberText ? value.value : typeof value === 'bigint' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) ? number : null
}

/** A whole number as JSON has it, whatever it was written as: 5.0 is 5. */
function toExact({ type }: EndpointInput, value: JsonValue): JsonValue {
  if (type !== 'integer' && type !== 'seed') return value
  const exact = toInteger(value)
  return exact === null ? value : keepNumber(String(exact))
}

function fromText(input: EndpointInput, text: string): JsonValue {
  const { type } = input
  if (type === 'choice') return input.choices.find((choice) => String(choice) === text) ?? text
  if (type === 'boolean') return text === 'true' ? true : text === 'false' ? false : text
  if (type === 'integer' || type === 'seed') return DIGITS.test(text) ? keepNumber(String(BigInt(text))) : text
  if (type === 'number') return text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : text
  return text
}

function isMinusOne(value: JsonValue): boolean {
  return toInteger(value) === -1n
}

function drawSeed({ minimum, maximum }: SeedInput, random: () => number): JsonValue {
  const least = toInteger(minimum) ?? 0n
  const most = toInteger(maximum) ?? MAX_RANDOM_SEED
  const from = least < 0n ? 0n : least
  const to = most < MAX_RANDOM_SEED ? most : MAX_RANDOM_SEED
  const span = to - from + 1n
  const drawn = from + BigInt(Math.floor(random() * Number(span)))
  return keepNumber(String(drawn > to ? to : drawn))
}
