/** Which values of a graph become inputs, under which names, and which are left as candidates. */
import type { JsonValue } from '../../../../lib/json/lossless-json.ts'
import { toPlainLine } from '../../../../lib/text/plain-text.ts'
import type { Work } from '../../../../lib/waiting/turns.ts'
import type { Parameter } from '../../workflows/convert/parameters.ts'
import type { ConvertWarning } from '../../workflows/convert/prompt/write-prompt.ts'
import type { EndpointInput, Place } from '../endpoint.ts'
import { toExternalInput } from './external-inputs.ts'
import type { ExternalInput } from './external-nodes.ts'
import { type Declared, namesWeights, toInput } from './input-types.ts'
import { nameSource } from './name-source.ts'
import { createNameBook, toName, toWords } from './names.ts'
import type { Purposes } from './purposes.ts'
import type { Source } from './sources.ts'

// A form with more fields is none; the rest can be declared.
const MAX_INPUTS = 200
const MAX_CANDIDATES = 500
const MAX_DESCRIPTION = 2_000

interface Choosing {
  readonly sources: readonly Source[]
  /** Of App mode, in its order. */
  readonly app: readonly Source[]
  readonly external: readonly ExternalInput[]
  readonly parameters: readonly Parameter[]
  readonly purposes: Purposes
  readonly warnings: ConvertWarning[]
}

interface Chosen {
  readonly inputs: readonly EndpointInput[]
  readonly candidates: readonly EndpointInput[]
}

const keyOf = ({ nodeId, input }: Place) => `${nodeId}\0${input}`

export function* chooseInputs({ sources, app, external, parameters, purposes, warnings }: Choosing): Work<Chosen> {
  const book = createNameBook()
  const claimed = new Set<string>()
  const declaredAt = new Map<string, Declared>()
  for (const { places, declared } of sources) {
    for (const [index, place] of places.entries()) declaredAt.set(keyOf(place), declared[index])
  }
  const mains = findMains(sources, parameters)
  yield
  const make = (source: Source): EndpointInput | null => {
    const isMain = mains.has(source)
    const wanted = nameSource(source, { purposes, isMain })
    const said = isMain ? nameAfterSign(source.title) : ''
    const described = {
      name: said || wanted.name,
      title: said === '' ? toPlainLine(wanted.title) : toWords(said),
      description: descriptionOf(source),
      places: source.places,
      example: source.value,
    }
    const input = toInput(described, source.declared)
    if (input === null) return null
    const name = book.take(described.name, wanted.prefix)
    return { ...input, name, title: input.title === toWords(described.name) ? toWords(name) : input.title }
  }
  const inputs: EndpointInput[] = []
  const add = (input: EndpointInput | null) => {
    if (input === null || inputs.length === MAX_INPUTS) return
    for (const place of input.places) claimed.add(keyOf(place))
    inputs.push(input)
  }
  const isFree = ({ places }: Source) => !places.some((place) => claimed.has(keyOf(place)))
  for (const source of app) add(make(source))
  for (const each of external) add(addExternal(each, { declaredAt, claimed, take: book.take, warnings }))
  const isSaid = inputs.length > 0
  for (const source of sources) {
    yield
    if (mains.has(source) && nameAfterSign(source.title) !== '' && isFree(source)) add(make(source))
  }
  if (!isSaid) {
    const made: EndpointInput[] = []
    for (const source of usualSources(sources.filter(isFree), { mains, parameters })) {
      yield
      const input = made.length < MAX_INPUTS ? make(source) : null
      if (input !== null) made.push(input)
    }
    for (const input of made.sort((one, other) => rankOf(one) - rankOf(other))) add(input)
  }
  if (inputs.length === MAX_INPUTS) {
    const message = `only ${MAX_INPUTS} inputs are proposed; further ones can be declared`
    warnings.push({ nodeId: inputs[MAX_INPUTS - 1].places[0]?.nodeId ?? '', input: null, message })
  }
  const candidates: EndpointInput[] = []
  for (const source of sources) {
    if (candidates.length === MAX_CANDIDATES) break
    yield
    const candidate = isFree(source) ? make(source) : null
    if (candidate !== null) candidates.push(candidate)
  }
  return { inputs, candidates }
}

interface AddingExternal {
  readonly declaredAt: ReadonlyMap<string, Declared>
  readonly claimed: ReadonlySet<string>
  readonly take: (name: string) => string
  readonly warnings: ConvertWarning[]
}

function addExternal(
  external: ExternalInput,
  { declaredAt, claimed, take, warnings }: AddingExternal,
): EndpointInput | null {
  const places = external.places.filter((place) => !claimed.has(keyOf(place)))
  if (places.length === 0) {
    warnings.push({ nodeId: external.nodeId, input: null, message: 'it declares an input that nothing uses' })
    return null
  }
  const name = toName(external.name) || toName(external.title) || 'setting'
  const free = take(name)
  return toExternalInput(
    { ...external, name: free, title: toPlainLine(external.title) || toWords(free), places },
    (place) => declaredAt.get(keyOf(place)),
  )
}

function descriptionOf({ declared }: Source): string {
  const { tooltip } = declared[0].input?.options ?? {}
  return typeof tooltip === 'string' ? tooltip.slice(0, MAX_DESCRIPTION).toWellFormed() : ''
}

/** `$photo` makes an input of the node's main value, and names it. */
function nameAfterSign(title: string | null): string {
  const sign = title === null ? null : /^\s*\$([^\s(].*)$/.exec(title)
  return sign === null ? '' : toName(sign[1])
}

/** The value of each node that its title is about: the file it loads, its only text, its only value. */
function findMains(sources: readonly Source[], parameters: readonly Parameter[]): ReadonlySet<Source> {
  const texts = new Set(parameters.flatMap((each) => (each.kind === 'text' ? [keyOf(each)] : [])))
  const mains = new Set<Source>()
  for (const own of Map.groupBy(sources, ({ nodeId }) => nodeId).values()) {
    const files = own.filter(({ declared }) => declared[0].file !== null)
    const written = own.filter(({ places }) => texts.has(keyOf(places[0])))
    const valued = own.find(({ input, holder }) => holder === 'primitive' || input === 'value' || input === 'choice')
    const single = [files, written, own].find((list) => list.length === 1)?.[0]
    // The title of a node that shows a subgraph is about the whole of it, unless it is made to name an input.
    const plain = own[0].holder === 'host' ? undefined : (valued ?? single)
    const isSigned = nameAfterSign(own[0].title) !== ''
    const main = plain ?? (isSigned ? (files[0] ?? written[0] ?? own[0]) : undefined)
    if (main !== undefined) mains.add(main)
  }
  return mains
}

interface Usual {
  readonly mains: ReadonlySet<Source>
  readonly parameters: readonly Parameter[]
}

const TECHNICAL =
  /^(?:sampler|scheduler|weight_dtype|dtype|precision|device|clip_type|type|interpolation|format|codec|container|crop|channel|control_after_generate|attention|.*(?:_name|_method|_mode|_dtype|_device|_type))$/
// Texts that are part of how the workflow works.
const WRITTEN_ONCE =
  /^(?:filename_prefix|expression|regex_pattern|pattern|find|replace|delimiter|code|script|fragment_shader)$/
/** Lists that a caller picks from, whatever the class. */
const PICKED =
  /^(?:aspect_ratio|ratio|(?:target_|output_)?resolution|(?:upscale|scale)_factor|scale_by|(?:output_|target_)?language|size|image_size|video_size|duration|quality|voice|style|style_preset|background|orientation)$/
// Of a class that no engine describes only the names are known.
const GUESSED = /^(?:prompt|text|positive|negative|(?:positive|negative|user)_prompt|(?:noise_)?seed|width|height)$/
const RANKS: Readonly<Record<EndpointInput['type'], number>> = {
  text: 0,
  file: 1,
  choice: 2,
  integer: 2,
  number: 2,
  boolean: 3,
  seed: 4,
}

/** Prompts before other texts; `first_frame` before `last_frame`, `style_1` before `style_2`. */
function rankOf({ type, name }: EndpointInput): number {
  const isLater = type === 'text' ? !name.startsWith('prompt') : type === 'file' && /^(?:last|end)_/.test(name)
  const number = type === 'file' ? Math.min(Number(/(\d{1,2})$/.exec(name)?.[1] ?? 0), 99) : 0
  return RANKS[type] + (isLater ? 0.5 : 0) + number / 1_000
}

/** What a caller usually sets. */
function usualSources(sources: readonly Source[], { mains, parameters }: Usual): Source[] {
  const kinds = new Map(parameters.map((each) => [keyOf(each), each.kind]))
  const kindOf = ({ places }: Source) =>
    places.map((place) => kinds.get(keyOf(place))).find((kind) => kind !== undefined) ?? null
  const isUsual = (source: Source): boolean => {
    const kind = kindOf(source)
    if (kind === 'seed') return !source.declared.every(({ node }) => node.inputs['add_noise'] === 'disable')
    if (source.declared[0].file !== null) return true
    if (source.isInner || isTechnical(source)) return false
    if (source.holder !== 'node' || kind !== null) return true
    if (source.declared[0].input === null) return GUESSED.test(lastWord(source.input))
    const isNamed = mains.has(source) && /^[a-z][a-z0-9_]*$/.test(source.title ?? '')
    return isNamed || (PICKED.test(lastWord(source.input)) && !/^Save|Preview/.test(source.declared[0].node.classType))
  }
  const usual = sources.filter(isUsual)
  const has = (kind: Parameter['kind']) => usual.some((each) => kindOf(each) === kind && !each.isInner)
  // What a subgraph does not show its author did not mean to be set, unless nothing of the kind is shown: an endpoint without a
  // prompt is no use, and one without a seed makes the same picture for ever.
  const isWritten = (each: Source) => each.isInner && kindOf(each) === 'text' && each.value !== '' && !isTechnical(each)
  const texts = has('text') ? [] : sources.filter(isWritten)
  const isShown = (source: Source) => kindOf(source) !== 'seed' || !source.isInner || !has('seed')
  return [...usual.filter(isShown), ...texts]
}

const lastWord = (path: string) => path.slice(path.lastIndexOf('.') + 1)

/** Names of weights, samplers and the like: an author may offer them, but nobody else would. */
function isTechnical({ declared, value, input, places }: Source): boolean {
  const [first] = declared
  if (first.file !== null) return false
  if (WRITTEN_ONCE.test(lastWord(places[0].input))) return true
  // Not the size of the picture, but what the model is told of it.
  if (/^CLIPTextEncode/.test(first.node.classType) && typeof value === 'number') return true
  if (declared.some((each) => isPicked(each) && namesWeights(each, value))) return true
  return (
    isPicked(first) && [input, places[0].input].some((path) => TECHNICAL.test(lastWord(path).replace(/_?\d+$/, '')))
  )
}

function isPicked({ input }: Declared): boolean {
  const type: JsonValue | readonly unknown[] | undefined = input?.type
  return Array.isArray(type) || type === 'COMBO' || type === 'COMFY_DYNAMICCOMBO_V3'
}
