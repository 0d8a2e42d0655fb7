/**
 * Which inputs the parameters of image clients set, as the author declares it. It is kept with the inputs: each version has its own, and
 * names no input that it does not have. What nothing is said of goes by names and types.
 */
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/lossless-json.ts'
import { closestWord } from '../../../lib/text/closest-word.ts'
import { invalidField } from '../errors.ts'
import type { EndpointInput, ImageParameter, MaskConvention } from './endpoint.ts'
import { checkDefault } from './narrow-input.ts'

type Type = EndpointInput['type']
type Name = ImageParameter['name']

const COUNTS: readonly Type[] = ['integer', 'number', 'choice']
const WORDS: readonly Type[] = ['text', 'choice']
/** Which inputs take what the parameter holds as it is. */
const TAKES: Readonly<Record<Name, readonly Type[]>> = {
  prompt: ['text'],
  negative_prompt: ['text'],
  width: COUNTS,
  height: COUNTS,
  n: COUNTS,
  steps: COUNTS,
  seed: ['seed'],
  size: WORDS,
  quality: WORDS,
  style: WORDS,
  background: WORDS,
  input_fidelity: WORDS,
  image: ['file'],
  mask: ['file'],
}
const NAMES = Object.keys(TAKES) as Name[]
const isWord = (name: Name) => TAKES[name] === WORDS

const MEMBERS = ['map', 'mask_convention']
const CONVENTIONS: readonly MaskConvention[] = ['white_is_edit', 'alpha']
const MAX_PICTURES = 16
const MAX_WORDS = 32
const MAX_WORD = 64

/** `said`: the member `openai` of a declaration. Throws invalid_field. */
export function declareParameters(inputs: readonly EndpointInput[], said: JsonValue): EndpointInput[] {
  if (said === null) return [...inputs]
  const { map = {}, mask_convention: convention = null, ...rest } = readObject(said, 'openai')
  const [unknown] = Object.keys(rest)
  if (unknown !== undefined) throw notKnown(`openai.${unknown}`, unknown, MEMBERS)
  const declared = new Map<EndpointInput, ImageParameter[]>()
  for (const [name, entry] of Object.entries(readObject(map, 'openai.map'))) {
    const field = `openai.map.${name.slice(0, MAX_WORD)}`
    const known = NAMES.find((each) => each === name)
    if (known === undefined) throw notKnown(field, name, NAMES)
    for (const [index, each] of readEntries(known, entry, field).entries()) {
      const { input, parameter } = readParameter(inputs, { name: known, entry: each, index, field })
      const others = declared.get(input) ?? []
      // Of several words each may choose among values; what is sent as it is belongs to one parameter.
      const other = parameter.values === undefined ? others.find(({ values }) => values === undefined) : undefined
      if (other !== undefined) throw invalidField(field, `sets the same input as ${other.name}`)
      declared.set(input, [...others, parameter])
    }
  }
  return inputs
    .map((input) => {
      const parameters = declared.get(input)
      return parameters === undefined ? input : { ...input, parameters }
    })
    .map(createWithConvention(convention, [...declared.values()].flat()))
}

function createWithConvention(convention: JsonValue, declared: readonly ImageParameter[]) {
  const known = CONVENTIONS.find((each) => each === convention)
  const field = 'openai.mask_convention'
  if (convention !== null && known === undefined) throw invalidField(field, `must be one of ${CONVENTIONS.join(', ')}`)
  if (known !== undefined && !declared.some(({ name }) => name === 'mask'))
    throw invalidField(field, 'means nothing without an input for the mask in openai.map')
  return (input: EndpointInput): EndpointInput => {
    const { parameters } = input
    if (known === undefined || parameters === undefined) return input
    return {
      ...input,
      parameters: parameters.map((each) => (each.name === 'mask' ? { ...each, convention: known } : each)),
    }
  }
}

function readEntries(name: Name, entry: JsonValue, field: string): readonly JsonValue[] {
  if (name !== 'image' || !Array.isArray(entry)) return [entry]
  if (entry.length > MAX_PICTURES) throw invalidField(field, `must name at most ${MAX_PICTURES} inputs`)
  return entry
}

interface Entry {
  readonly name: Name
  readonly entry: JsonValue
  readonly index: number
  readonly field: string
}

function readParameter(
  inputs: readonly EndpointInput[],
  { name, entry, index, field }: Entry,
): { readonly input: EndpointInput; readonly parameter: ImageParameter } {
  const { input: wanted, values, ...rest } = typeof entry === 'string' ? { input: entry } : readObject(entry, field)
  const [unknown] = Object.keys(rest)
  if (unknown !== undefined) throw notKnown(`${field}.${unknown}`, unknown, ['input', 'values'])
  if (typeof wanted !== 'string') throw invalidField(field, 'must be the name of an input')
  const input = inputs.find((each) => each.name === wanted)
  if (input === undefined)
    throw notKnown(
      field,
      wanted,
      inputs.map((each) => each.name),
      'names no input of the endpoint',
    )
  const parameter = { name, ...(name === 'image' && { index }) }
  if (values !== undefined) {
    if (!isWord(name)) throw invalidField(`${field}.values`, `means nothing for ${name}, which is sent as it is`)
    return { input, parameter: { ...parameter, values: readValues(input, values, `${field}.values`) } }
  }
  const fits =
    TAKES[name].includes(input.type) &&
    !(name === 'image' && !isPicture(input, ['image'])) &&
    !(name === 'mask' && !isPicture(input, ['image', 'mask']))
  if (fits) return { input, parameter }
  const hint = isWord(name) ? '; say with values what each word sets' : ''
  throw invalidField(
    field,
    `cannot set ${input.name}, which is ${input.type === 'file' ? `a file (${input.kind})` : `of the type ${input.type}`}${hint}`,
  )
}

function isPicture(input: EndpointInput, kinds: readonly string[]): boolean {
  return input.type === 'file' && kinds.includes(input.kind)
}

function readValues(input: EndpointInput, values: JsonValue, field: string): JsonObject {
  const entries = Object.entries(readObject(values, field))
  if (entries.length === 0 || entries.length > MAX_WORDS) throw invalidField(field, `must have 1 to ${MAX_WORDS} words`)
  if (input.type === 'file') throw invalidField(field, `cannot set ${input.name}, which is a file`)
  for (const [word, value] of entries) {
    if (word === '' || word.length > MAX_WORD)
      throw invalidField(field, `must have words of 1 to ${MAX_WORD} characters`)
    checkDefault(input, value, `${field}.${word}`)
  }
  return Object.fromEntries(entries)
}

function readObject(value: JsonValue, field: string): JsonObject {
  if (!isJsonObject(value)) throw invalidField(field, 'must be an object')
  return value
}

function notKnown(field: string, word: string, words: readonly string[], what = 'is not known here') {
  const near = word.length <= MAX_WORD ? closestWord(word, words) : null
  return invalidField(field.slice(0, 120), `${what}${near === null ? '' : `; did you mean ${near}?`}`)
}
