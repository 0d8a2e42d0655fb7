/** An input within narrower bounds than its class has. Never wider: the engine would refuse what callers send. */
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  stringifyLosslessJson,
} from '../../../lib/json/lossless-json.ts'
import { invalidField } from '../errors.ts'
import type { ChoiceInput, EndpointInput, FileInput, FileKind, NumberInput, SeedInput, TextInput } from './endpoint.ts'
import { findPatternFault, toMatcher } from './pattern-check.ts'
import { compareNumbers, isInteger, isNumber } from './propose/input-types.ts'

type Type = EndpointInput['type']

/** Which members of a declaration mean something for which types; the others are for all. */
const FOR_TYPES: Readonly<Record<string, readonly Type[]>> = {
  choices: ['choice', 'text', 'integer', 'number'],
  minimum: ['integer', 'number', 'seed'],
  maximum: ['integer', 'number', 'seed'],
  pattern: ['text'],
  min_length: ['text'],
  max_length: ['text'],
  max_pixels: ['file'],
  max_bytes: ['file'],
  kind: ['file'],
}
const WITHOUT_DEFAULT: readonly Type[] = ['file', 'seed']

/** `said`: the members of the author's entry; `field`: how refusals name it. */
export function narrowInput(input: EndpointInput, said: JsonObject, field: string): EndpointInput {
  for (const [member, types] of Object.entries(FOR_TYPES)) {
    if (!Object.hasOwn(said, member) || types.includes(input.type)) continue
    throw invalidField(`${field}.${member}`, `means nothing for an input of the type ${input.type}`)
  }
  const narrowed = withDefault(narrowType(input, said, field), said, field)
  const { required = narrowed.isRequired } = said
  if (typeof required !== 'boolean') throw invalidField(`${field}.required`, 'must be true or false')
  return { ...narrowed, isRequired: required }
}

function narrowType(input: EndpointInput, said: JsonObject, field: string): EndpointInput {
  const bounded = isBounded(input) ? narrowBounds(input, said, field) : input
  if (Object.hasOwn(said, 'choices')) return narrowChoices(bounded, said['choices'], `${field}.choices`)
  if (bounded.type === 'text') return narrowText(bounded, said, field)
  return bounded.type === 'file' ? narrowFile(bounded, said, field) : bounded
}

const isBounded = (input: EndpointInput): input is NumberInput | SeedInput => 'minimum' in input

function narrowBounds<Input extends NumberInput | SeedInput>(input: Input, said: JsonObject, field: string): Input {
  const read = (member: 'minimum' | 'maximum'): JsonValue => {
    const { [member]: value = null } = said
    const own = input[member]
    if (value === null) return own
    const at = `${field}.${member}`
    if (!isNumber(value) || (input.type !== 'number' && !isInteger(value))) {
      throw invalidField(at, input.type === 'number' ? 'must be a number' : 'must be a whole number')
    }
    for (const [bound, sign, word] of [
      [input.minimum, -1, 'below'],
      [input.maximum, 1, 'above'],
    ] as const) {
      if (bound === null || compareNumbers(value, bound) * sign <= 0) continue
      throw invalidField(at, `must not be ${word} ${show(bound)}, which the workflow allows`)
    }
    return value
  }
  const [minimum, maximum] = [read('minimum'), read('maximum')]
  if (minimum !== null && maximum !== null && compareNumbers(minimum, maximum) > 0) {
    throw invalidField(`${field}.minimum`, `must not be above the maximum of ${show(maximum)}`)
  }
  return { ...input, minimum, maximum }
}

const MAX_CHOICES = 1_000

function narrowChoices(input: EndpointInput, listed: JsonValue, field: string): ChoiceInput {
  if (!Array.isArray(listed) || listed.length === 0 || listed.length > MAX_CHOICES) {
    throw invalidField(field, `must be a list of 1 to ${MAX_CHOICES} values`)
  }
  const choices = listed.map((choice) => checkValue(input, choice, field))
  const { name, title, description, isRequired, places, example } = input
  const preset = 'default' in input ? input.default : null
  return {
    name,
    title,
    description,
    isRequired,
    places,
    example,
    type: 'choice',
    default: preset,
    choices,
    isOpen: false,
  }
}

function narrowText(input: TextInput, said: JsonObject, field: string): TextInput {
  const maxLength = readCount(said, 'max_length', { field, most: input.maxLength, least: 1 }) ?? input.maxLength
  const minLength = readCount(said, 'min_length', { field, most: maxLength, least: 0 }) ?? input.minLength
  const { pattern = null } = said
  if (pattern === null) return { ...input, minLength, maxLength }
  if (typeof pattern !== 'string') throw invalidField(`${field}.pattern`, 'must be a regular expression')
  const fault = findPatternFault(pattern, maxLength)
  if (fault !== null) throw invalidField(`${field}.pattern`, fault)
  return { ...input, minLength, maxLength, pattern }
}

const KINDS: readonly FileKind[] = ['image', 'mask', 'video', 'audio', 'model3d', 'file']

function narrowFile(input: FileInput, said: JsonObject, field: string): FileInput {
  const { kind = input.kind } = said
  const known = KINDS.find((each) => each === kind)
  if (known === undefined) throw invalidField(`${field}.kind`, `must be one of ${KINDS.join(', ')}`)
  const isNarrower = known === input.kind || input.kind === 'file' || (input.kind === 'image' && known === 'mask')
  if (!isNarrower) throw invalidField(`${field}.kind`, `must be ${input.kind}, which the workflow loads there`)
  const maxPixels = readCount(said, 'max_pixels', { field, most: Number.MAX_SAFE_INTEGER, least: 1 }) ?? input.maxPixels
  if (maxPixels !== null && !['image', 'mask', 'video', 'file'].includes(known)) {
    throw invalidField(`${field}.max_pixels`, `means nothing for files of the kind ${known}`)
  }
  const maxBytes = readCount(said, 'max_bytes', { field, most: Number.MAX_SAFE_INTEGER, least: 1 }) ?? input.maxBytes
  return { ...input, kind: known, maxPixels, maxBytes }
}

interface Count {
  readonly field: string
  readonly least: number
  readonly most: number
}

function readCount(said: JsonObject, member: string, { field, least, most }: Count): number | null {
  const { [member]: value = null } = said
  if (value === null) return null
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value
  throw invalidField(`${field}.${member}`, `must be a whole number from ${least} to ${most}`)
}

/** The default that the author gives, or the old one, if it still is allowed. */
function withDefault(input: EndpointInput, said: JsonObject, field: string): EndpointInput {
  const isGiven = Object.hasOwn(said, 'default') && said['default'] !== null
  if (WITHOUT_DEFAULT.includes(input.type)) {
    if (isGiven) throw invalidField(`${field}.default`, `means nothing for an input of the type ${input.type}`)
    return input
  }
  // A call always has a value for what is required, so the old one need not fit.
  if (said['required'] === true && !isGiven)
    return input.type === 'boolean' ? input : ({ ...input, default: null } as EndpointInput)
  const preset = isGiven ? said['default'] : 'default' in input ? input.default : null
  if (preset === null) return input
  const value = checkDefault(input, preset, `${field}.default`)
  return { ...input, default: value } as EndpointInput
}

/** The value, if a call could send it. */
export function checkDefault(input: EndpointInput, value: JsonValue, field: string): JsonValue {
  if (input.type === 'choice' && !input.isOpen && !includes(input.choices, value)) {
    throw invalidField(field, `must be one of the choices, and ${show(value)} is not`)
  }
  return checkValue(input, value, field)
}

function checkValue(input: EndpointInput, value: JsonValue, field: string): JsonValue {
  switch (input.type) {
    case 'boolean':
      if (typeof value !== 'boolean') throw invalidField(field, 'must be true or false')
      break
    case 'file':
      if (typeof value !== 'string') throw invalidField(field, 'must be the name of a file')
      break
    case 'text':
      checkText(input, value, field)
      break
    case 'choice':
      if (isJsonObject(value) || Array.isArray(value) || value === null)
        throw invalidField(field, 'must be a text or a number')
      if (!input.isOpen && !includes(input.choices, value))
        throw invalidField(field, `has ${show(value)}, which the workflow does not offer`)
      break
    case 'integer':
    case 'number':
    case 'seed':
      checkNumber(input, value, field)
  }
  return value
}

function checkText({ maxLength, minLength, pattern }: TextInput, value: JsonValue, field: string): void {
  if (typeof value !== 'string') throw invalidField(field, 'must be a text')
  if (value.length > maxLength)
    throw invalidField(field, `must have at most ${maxLength} characters, and has ${value.length}`)
  if (value.length < minLength)
    throw invalidField(field, `must have at least ${minLength} characters, and has ${value.length}`)
  if (pattern !== null && !toMatcher(pattern).test(value))
    throw invalidField(field, `must match the pattern ${pattern}, and ${show(value)} does not`)
}

function checkNumber({ type, minimum, maximum }: NumberInput | SeedInput, value: JsonValue, field: string): void {
  if (!isNumber(value)) throw invalidField(field, 'must be a number')
  if (type !== 'number' && !isInteger(value)) throw invalidField(field, 'must be a whole number')
  if (minimum !== null && compareNumbers(value, minimum) < 0)
    throw invalidField(field, `must not be below ${show(minimum)}, and is ${show(value)}`)
  if (maximum !== null && compareNumbers(value, maximum) > 0)
    throw invalidField(field, `must not be above ${show(maximum)}, and is ${show(value)}`)
}

const includes = (list: readonly JsonValue[], value: JsonValue) =>
  list.some((each) => each === value || (isNumber(each) && isNumber(value) && compareNumbers(each, value) === 0))

const show = (value: JsonValue) => stringifyLosslessJson(value).slice(0, 80)
