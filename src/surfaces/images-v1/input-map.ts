/**
 * Which input of an endpoint is which parameter of an image client: as its author declares, else by name, else by type. What a request sets is put under the names of
 * inputs, and what is wrong with an input is told under the name of the parameter. Pure.
 */
import type { JsonObject, JsonValue } from '../../../lib/json/lossless-json.ts'
import type {
  ChoiceInput,
  EndpointInput,
  FileInput,
  ImageParameter,
  MaskConvention,
  SeedInput,
} from '../../domain/endpoints/endpoint.ts'
import { invalidField } from '../../domain/errors.ts'
import { type ImageRequest, readText } from './image-request.ts'

export interface InputMap {
  readonly byName: ReadonlyMap<string, EndpointInput>
  /** null: it takes no text. */
  readonly prompt: EndpointInput | null
  readonly width: EndpointInput | null
  readonly height: EndpointInput | null
  readonly aspect: ChoiceInput | null
  /** How many pictures one run makes. */
  readonly count: EndpointInput | null
  readonly seed: SeedInput | null
  /** By the names of parameters that clients add. */
  readonly extras: ReadonlyMap<string, EndpointInput>
  readonly images: readonly FileInput[]
  readonly mask: FileInput | null
  /** null: such that loaders of either kind read it. */
  readonly maskConvention: MaskConvention | null
  /** Parameters whose words set an input, as declared. */
  readonly words: ReadonlyMap<string, Word>
}

interface Word {
  readonly input: EndpointInput
  /** null: the word itself. */
  readonly values: ImageParameter['values'] | null
}

const PROMPT = ['prompt', 'text', 'positive_prompt', 'positive']
const NEGATIVE = ['negative_prompt', 'negative', 'negative_text']
const IMAGE = ['image', 'photo', 'picture', 'init_image', 'input_image', 'source_image']

export function mapInputs(inputs: readonly EndpointInput[]): InputMap {
  const byName = new Map(inputs.map((input) => [input.name, input]))
  const named = (names: readonly string[], fits: (input: EndpointInput) => boolean): EndpointInput | null =>
    names.map((name) => byName.get(name)).find((input) => input !== undefined && fits(input)) ?? null
  const isText = ({ type }: EndpointInput) => type === 'text'
  const isNumber = ({ type }: EndpointInput) => type === 'integer' || type === 'number' || type === 'choice'
  const texts = inputs.filter((input) => isText(input) && !input.name.includes('negative'))
  const seeds = inputs.filter((input) => input.type === 'seed')
  const declared = inputs.flatMap((input) => (input.parameters ?? []).map((parameter) => ({ ...parameter, input })))
  const said = (name: ImageParameter['name']) => declared.find((each) => each.name === name)?.input ?? null
  const mask = (said('mask') as FileInput | null) ?? inputs.find((input): input is FileInput => isMask(input)) ?? null
  const pictures = inputs.filter((input): input is FileInput => isFile(input, 'image') && input !== mask)
  const first = named(IMAGE, (input) => pictures.includes(input as FileInput)) as FileInput | null
  const images = declared.filter(({ name }) => name === 'image').toSorted((a, b) => (a.index ?? 0) - (b.index ?? 0))
  const ownSeed = named(['seed', 'noise_seed'], ({ type }) => type === 'seed') ?? onlyOf(seeds)
  const seed = (said('seed') ?? ownSeed) as SeedInput | null
  const extras = [
    ['seed', seed],
    ['steps', named(['steps', 'num_inference_steps'], isNumber)],
    ['negative_prompt', named(NEGATIVE, isText)],
  ] as const
  const words = declared.filter(({ name }) => WORDS.has(name))
  return {
    byName,
    prompt: said('prompt') ?? named(PROMPT, isText) ?? onlyOf(texts),
    width: said('width') ?? named(['width'], isNumber),
    height: said('height') ?? named(['height'], isNumber),
    aspect: named(['aspect_ratio', 'aspect', 'ratio'], ({ type }) => type === 'choice') as ChoiceInput | null,
    count: said('n') ?? named(['n', 'batch_size', 'num_images', 'num_outputs'], isNumber),
    seed,
    extras: new Map(
      extras.flatMap(([name, input]) => {
        const found = said(name) ?? byName.get(name) ?? input
        return found === null ? [] : [[name, found]]
      }),
    ),
    images:
      images.length > 0
        ? images.map(({ input }) => input as FileInput)
        : first === null
          ? pictures
          : [first, ...pictures.filter((input) => input !== first)],
    mask,
    maskConvention: declared.find(({ name }) => name === 'mask')?.convention ?? null,
    words: new Map(words.map(({ name, input, values = null }) => [name, { input, values }])),
  }
}

const WORDS: ReadonlySet<string> = new Set(['size', 'quality', 'style', 'background', 'input_fidelity'])

function onlyOf(inputs: readonly EndpointInput[]): EndpointInput | null {
  return inputs.length === 1 ? inputs[0] : null
}

function isFile(input: EndpointInput, kind: FileInput['kind']): input is FileInput {
  return input.type === 'file' && input.kind === kind
}

function isMask(input: EndpointInput): boolean {
  const isNamed = /^mask(_image)?$/.test(input.name)
  return isFile(input, 'mask') || (isNamed && isFile(input, 'image'))
}

/** Files excepted. `n` is left out where one run makes one picture. Throws invalid_field. */
export function toInputs(map: InputMap, request: ImageRequest): JsonObject {
  const inputs: Record<string, JsonValue> = {}
  const set = (input: EndpointInput | null, value: JsonValue) => {
    if (input !== null) inputs[input.name] = value
  }
  const { others } = request
  // A word chooses among values; an input that is given itself says more.
  for (const [name, { input, values }] of map.words)
    if (Object.hasOwn(others, name)) setWord(set, { name, value: others[name], input, values })
  for (const [name, value] of Object.entries(others)) {
    if (map.words.has(name) || DEFAULTS.get(name)?.includes(value)) continue
    const input = map.extras.get(name) ?? map.byName.get(name)
    if (input !== undefined) set(input, value)
    else if (name === 'size') setSize(map, readText(value, 'size') as string, set)
    else mustBeIgnored(name, value)
  }
  if (others['background'] === 'transparent' && request.format === 'jpeg')
    throw invalidField('output_format', 'must be png or webp where the background is transparent')
  if (request.prompt === null && map.prompt !== null) throw invalidField('prompt', 'is required')
  if (request.prompt !== null && request.prompt !== '' && map.prompt === null)
    throw invalidField('prompt', 'has no input in this model: it takes no text, or several and none is called prompt')
  if (request.prompt !== null) set(map.prompt, request.prompt)
  if (request.n !== null) set(map.count, request.n)
  return inputs
}

type SetInput = (input: EndpointInput | null, value: JsonValue) => void

interface SentWord extends Word {
  readonly name: string
  readonly value: JsonValue
}

function setWord(set: SetInput, { name, value, input, values }: SentWord): void {
  const word = readText(value, name) as string
  const isDefault = DEFAULTS.get(name)?.includes(word) === true
  if (values == null) {
    if (!isDefault) set(input, word)
  } else if (Object.hasOwn(values, word)) set(input, values[word])
  else if (!isDefault) throw invalidField(name, `must be one of ${['auto', ...Object.keys(values)].join(', ')}`)
}

/** What means the endpoint's own default. */
const DEFAULTS: ReadonlyMap<string, readonly JsonValue[]> = new Map(
  Object.entries({
    size: ['auto'],
    quality: ['auto', 'standard'],
    background: ['auto', 'opaque'],
    style: ['auto', 'vivid'],
    moderation: ['auto', 'low'],
    input_fidelity: ['auto', 'low'],
  }),
)
const QUALITIES: readonly JsonValue[] = ['low', 'medium', 'high', 'xhigh', 'max', 'hd']

/** Quality is a wish; what would change the picture otherwise, and cannot be had, is refused. */
function mustBeIgnored(name: string, value: JsonValue): void {
  if (name === 'quality' && QUALITIES.includes(value)) return
  const defaults = DEFAULTS.get(name)
  if (defaults === undefined)
    throw invalidField(name.slice(0, 64).toWellFormed(), 'is neither a parameter nor an input of this model')
  throw invalidField(name, `must be ${defaults.join(' or ')}: this model has nothing else to offer`)
}

function setSize({ width, height, aspect }: InputMap, size: string, set: SetInput): void {
  const [, wide, high] = (/^([1-9]\d{0,4})x([1-9]\d{0,4})$/.exec(size) ?? []).map(Number)
  if (wide === undefined) throw invalidField('size', 'must be auto, or width and height such as 1024x768')
  if (width !== null && height !== null) {
    set(width, wide)
    set(height, high)
    return
  }
  const fitting = aspect?.choices.find((choice) => {
    const [, left, right] = /^(\d+):(\d+)/.exec(String(choice)) ?? []
    return left !== undefined && Number(left) * high === Number(right) * wide
  })
  const offered = aspect === null ? 'one size' : aspect.choices.join(', ')
  if (fitting === undefined) throw invalidField('size', `must be auto: this model has ${offered}`)
  set(aspect, fitting)
}

/** The parameter that an input was set by. */
export function paramOf(map: InputMap, name: string): string {
  if (name === map.prompt?.name) return 'prompt'
  if (name === map.width?.name || name === map.height?.name || name === map.aspect?.name) return 'size'
  if (name === map.count?.name) return 'n'
  if (name === map.mask?.name) return 'mask'
  for (const [word, { input, values }] of map.words) if (values === null && input.name === name) return word
  return map.images.some((input) => input.name === name) ? 'image' : name
}
