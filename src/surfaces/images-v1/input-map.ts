/**
 * Which input of an endpoint is which parameter of an image client: by name, else by type. What a request sets is put under the names of
 * inputs, and what is wrong with an input is told under the name of the parameter. Pure.
 */
import type { JsonObject, JsonValue } from '../../../lib/json/lossless-json.ts'
import type { ChoiceInput, EndpointInput, FileInput, SeedInput } from '../../domain/endpoints/endpoint.ts'
import { invalidField } from '../../domain/errors.ts'
import { type ImageRequest, readText } from './image-request.ts'

export interface InputMap {
  readonly byName: ReadonlyMap<string, EndpointInput>
  /** null: it takes no text. */
  readonly prompt: EndpointInput | null
  readonly negativePrompt: EndpointInput | null
  readonly width: EndpointInput | null
  readonly height: EndpointInput | null
  readonly aspect: ChoiceInput | null
  /** How many pictures one run makes. */
  readonly count: EndpointInput | null
  readonly seed: SeedInput | null
  readonly steps: EndpointInput | null
  readonly images: readonly FileInput[]
  readonly mask: FileInput | null
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
  const mask = inputs.find((input): input is FileInput => isMask(input)) ?? null
  const pictures = inputs.filter((input): input is FileInput => isFile(input, 'image') && input !== mask)
  const first = named(IMAGE, (input) => pictures.includes(input as FileInput)) as FileInput | null
  return {
    byName,
    prompt: named(PROMPT, isText) ?? onlyOf(texts),
    negativePrompt: named(NEGATIVE, isText),
    width: named(['width'], isNumber),
    height: named(['height'], isNumber),
    aspect: named(['aspect_ratio', 'aspect', 'ratio'], ({ type }) => type === 'choice') as ChoiceInput | null,
    count: named(['n', 'batch_size', 'num_images', 'num_outputs'], isNumber),
    seed: (named(['seed', 'noise_seed'], ({ type }) => type === 'seed') ?? onlyOf(seeds)) as SeedInput | null,
    steps: named(['steps', 'num_inference_steps'], isNumber),
    images: first === null ? pictures : [first, ...pictures.filter((input) => input !== first)],
    mask,
  }
}

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
  for (const [name, value] of Object.entries(request.others)) {
    if (DEFAULTS[name]?.includes(value)) continue
    if (map.byName.has(name)) inputs[name] = value
    else if (name === 'seed' && map.seed !== null) set(map.seed, value)
    else if (name === 'steps' && map.steps !== null) set(map.steps, value)
    else if (name === 'negative_prompt' && map.negativePrompt !== null) set(map.negativePrompt, value)
    else if (name === 'size') setSize(map, readText(value, 'size') as string, set)
    else mustBeIgnored(name, value)
  }
  if (request.prompt === null && map.prompt !== null) throw invalidField('prompt', 'is required')
  if (request.prompt !== null && request.prompt !== '' && map.prompt === null)
    throw invalidField('prompt', 'has no input in this model: it takes no text, or several and none is called prompt')
  if (request.prompt !== null) set(map.prompt, request.prompt)
  if (request.n !== null) set(map.count, request.n)
  return inputs
}

/** What means the endpoint's own default. */
const DEFAULTS: Readonly<Record<string, readonly JsonValue[]>> = {
  size: ['auto'],
  quality: ['auto', 'standard'],
  background: ['auto', 'opaque'],
  style: ['auto', 'vivid'],
  moderation: ['auto', 'low'],
  input_fidelity: ['auto', 'low'],
}
const QUALITIES: readonly JsonValue[] = ['low', 'medium', 'high', 'xhigh', 'max', 'hd']

/** Quality is a wish; what would change the picture otherwise, and cannot be had, is refused. */
function mustBeIgnored(name: string, value: JsonValue): void {
  if (name === 'quality' && QUALITIES.includes(value)) return
  if (DEFAULTS[name] === undefined)
    throw invalidField(name.slice(0, 64).toWellFormed(), 'is neither a parameter nor an input of this model')
  throw invalidField(name, `must be ${DEFAULTS[name].join(' or ')}: this model has nothing else to offer`)
}

function setSize(
  { width, height, aspect }: InputMap,
  size: string,
  set: (input: EndpointInput | null, value: JsonValue) => void,
): void {
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
  return map.images.some((input) => input.name === name) ? 'image' : name
}
