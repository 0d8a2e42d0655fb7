/**
 * One model of the catalogue, as its data file says: what it is called, what it takes and gives, what it costs, and, in
 * `adapter`, how its provider is to be spoken to. Only the provider's adapter reads that last part. Also the two languages that such
 * a file uses: paths into documents, and rules of prices.
 */

/** What JSON.parse gives. Data files and inputs need no more than this; what is forwarded is the caller's own bytes. */
export type Json = null | boolean | number | string | readonly Json[] | JsonRecord
export interface JsonRecord {
  readonly [name: string]: Json
}

export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export const POLICY_CHARGES = ['yes', 'no', 'unknown'] as const
/** Whether a call that the provider refuses for its content is still charged. */
type PolicyCharge = (typeof POLICY_CHARGES)[number]

export const MODALITIES = ['text', 'image', 'video', 'audio', '3d'] as const
type Modality = (typeof MODALITIES)[number]

/**
 * `released`: listed and runnable. `unreleased`: not listed, and to whoever asks it does not exist. `listed`: shown but not
 * runnable yet. `retired`: gone; the answer names its successor.
 */
export const MODEL_STATES = ['released', 'unreleased', 'listed', 'retired'] as const
type ModelState = (typeof MODEL_STATES)[number]

/** `direct`: the submit's own answer is the result. `poll`: the submit gives a handle, polling gives the result. */
export const RETURN_MODES = ['direct', 'poll'] as const
type ReturnMode = (typeof RETURN_MODES)[number]

export interface ModelInput {
  /** JSON Schema as OpenAPI 3.0 writes it; null: any JSON object passes. */
  readonly schema: JsonRecord | null
  /** The body's field that names the model (`model`, `model_name` ...); null when the provider has none. */
  readonly modelField: string | null
  /** The value of that field; the model's own segment of the id unless the provider spells it otherwise. */
  readonly modelName: string
  readonly modalities: readonly Modality[]
  readonly example: JsonRecord | null
}

export interface ModelOutput {
  readonly schema: JsonRecord | null
  /** null: whatever the provider says. */
  readonly mediaType: string | null
  readonly modalities: readonly Modality[]
}

/** Which leaves of the result are copied to our storage, in the notation of paths, and for how long they are served. */
export interface Hosting {
  readonly leaves: readonly string[]
  readonly lifetimeMs: number
}

export interface Model {
  /** `{provider}/{model}`. */
  readonly id: string
  readonly provider: string
  readonly model: string
  readonly state: ModelState
  /** The id to use instead, of a retired model. */
  readonly successor: string | null
  /** Callers without this entitlement may not use it; null: everybody may. */
  readonly entitlement: string | null
  readonly chargesOnPolicyRejection: PolicyCharge
  readonly input: ModelInput
  readonly output: ModelOutput
  readonly returns: ReturnMode
  readonly price: PriceRule
  /** False: taken from public sources, and never compared with a bill. Left out: it was. */
  readonly isPriceConfirmed?: boolean
  /** Where the price was read, and when; left out or null: nobody wrote it down. */
  readonly priceSource?: PriceSource | null
  /** null: the router's own. */
  readonly deadlineMs: number | null
  readonly hosting: Hosting | null
  /** Read by the provider's adapter alone. */
  readonly adapter: JsonRecord
  /** How it stands in for another model; left out or null: it does not. */
  readonly alternate?: Alternate | null
  /** It belongs to one account and is in no catalogue; left out: it is for all accounts. */
  readonly isOwn?: true
  /** How it takes conversations in OpenAI's form; left out or null: it takes none. */
  readonly chat?: ChatForm | null
  /** How OpenAI's requests for pictures become inputs of it; left out or null: they do not. */
  readonly images?: ImageForm | null
}

export interface PriceSource {
  /** An https address. */
  readonly document: string
  /** `2026-10-07`, or `2026-10` where the day is not known. */
  readonly date: string
}

/** Fields are names of the input, joined by dots where they lie deeper. */
export interface ImageForm {
  /** null: it takes no text, and what is said is ignored. */
  readonly prompt: string | null
  /** null: one picture at a time. */
  readonly n: string | null
  /** null: it has one size. */
  readonly size: ImageSize | null
  /** null: it takes no pictures. */
  readonly image: ImageFields | null
  readonly mask: string | null
  /** What is called the same there: `quality`, `background` and the like. */
  readonly same: readonly string[]
  /** Stands in every input. */
  readonly set: JsonRecord
  /** Where its answer has the pictures. */
  readonly base64: JsonPath | null
  readonly url: JsonPath | null
}

export type ImageSize =
  | { readonly kind: 'pair'; readonly width: string; readonly height: string }
  /** `values`: by the size that was asked for; null: it is written as it came. */
  | { readonly kind: 'word'; readonly field: string; readonly values: Readonly<Record<string, Json>> | null }

export interface ImageFields {
  /** One for each picture, in order; or one that takes a list. */
  readonly fields: readonly string[]
  readonly isList: boolean
  /** At most so many. */
  readonly max: number
  readonly as: 'data_uri' | 'base64'
}

/** The same model as it is called for a conversation in OpenAI's form: with a schema, and perhaps a price and rules, of its own. */
export interface ChatForm {
  readonly model: Model
  /** Callers write a name of the provider's own behind the id; this one counts where they write none. null: the id says it all. */
  readonly defaultName: string | null
  /** The ids of models that it stands in for, with the provider's own names of them. */
  readonly standsInFor: Readonly<Record<string, string>>
}

/** The canonical id of a model, `{provider}/{model}`, as in the path of a request. */
export interface ModelId {
  readonly id: string
  readonly provider: string
  readonly model: string
}

const SEGMENT = /^[a-z0-9]+(?:[._-][a-z0-9]+)*$/
export const PROVIDER_MAX_LENGTH = 64
export const MODEL_MAX_LENGTH = 128

function isModelSegment(text: string, maxLength: number): boolean {
  return text.length <= maxLength && SEGMENT.test(text)
}

/** null when the text cannot be the id of any model. */
export function readModelId(text: string): ModelId | null {
  const slash = text.indexOf('/')
  const provider = text.slice(0, Math.max(0, slash))
  const model = text.slice(slash + 1)
  const isId = isModelSegment(provider, PROVIDER_MAX_LENGTH) && isModelSegment(model, MODEL_MAX_LENGTH)
  return isId ? { id: text, provider, model } : null
}

/**
 * Where a value is in a JSON document: names joined by dots, `[]` for every element of a list, `[0]` for one of them, and
 * an empty path for the document itself: `data[].url`, `task.content.url`, `output[]`. A path that leads nowhere finds nothing.
 */
export type JsonPath = readonly (string | number | typeof EVERY)[]

const EVERY = Symbol('every element')
const PATH_SEGMENT = /^([^.[\]]+)?((?:\[\d*\])*)$/

/** The text that `readJsonPath` reads. */
export function writeJsonPath(path: JsonPath): string {
  const text = path.map((step) => (typeof step === 'string' ? `.${step}` : `[${step === EVERY ? '' : String(step)}]`))
  return text.join('').replace(/^\./, '')
}

/** Where a found value hangs, so that it can be replaced: `holder[key]` is the value. */
export interface Leaf {
  readonly holder: Record<string | number, unknown>
  readonly key: string | number
  readonly value: unknown
}

/** Throws when the text is no path. */
export function readJsonPath(text: string): JsonPath {
  if (text === '') return []
  return text.split('.').flatMap((segment) => {
    const found = PATH_SEGMENT.exec(segment)
    if (segment === '' || found === null)
      throw new Error(`${JSON.stringify(text)} is not a path; write it like data[].url`)
    const indexes = [...(found[2] ?? '').matchAll(/\[(\d*)\]/g)].map(([, index]) =>
      index === '' ? EVERY : Number(index),
    )
    return found[1] === undefined ? indexes : [found[1], ...indexes]
  })
}

/** Every value at the path, in order, null included: some providers write out what they do not have. */
export function findLeaves(document: unknown, path: JsonPath): Leaf[] {
  let leaves: Leaf[] = [{ holder: { document }, key: 'document', value: document }]
  for (const step of path) leaves = leaves.flatMap(({ value }) => stepInto(value, step))
  return leaves
}

function stepInto(value: unknown, step: JsonPath[number]): Leaf[] {
  if (typeof value !== 'object' || value === null) return []
  const holder = value as Record<string | number, unknown>
  if (step === EVERY) return Array.isArray(value) ? value.map((item, key) => ({ holder, key, value: item })) : []
  return hasStep(value, step) ? [{ holder, key: step, value: holder[step] }] : []
}

/** Whether a value at the path passes, null included. For answers that are read with every call: nothing is made on the way. */
export function someValue(document: unknown, path: JsonPath, passes: (value: unknown) => boolean, from = 0): boolean {
  let value = document
  for (let at = from; at < path.length; at++) {
    const step = path[at]
    if (typeof value !== 'object' || value === null) return false
    if (step === EVERY)
      return Array.isArray(value) && value.some((item: unknown) => someValue(item, path, passes, at + 1))
    if (!hasStep(value, step)) return false
    value = (value as Record<string | number, unknown>)[step]
  }
  return passes(value)
}

/** The first value at the path; undefined when there is none. */
export function findValue(document: unknown, path: JsonPath): unknown {
  let found: unknown
  someValue(document, path, (value) => {
    found = value
    return true
  })
  return found
}

function hasStep(holder: object, step: string | number): boolean {
  if (typeof step === 'number') return Array.isArray(holder) && step < holder.length
  return !Array.isArray(holder) && Object.hasOwn(holder, step)
}

// What a call costs, as data: a sum of parts, each a rate times quantities. Rates and quantities come from the input, from
// the result or from the usage that the provider reports. A rule that needs only the input gives an exact price beforehand;
// where the provider decides, the rule says between which bounds.

export const PRICE_UNITS = [
  'request',
  'image',
  'second',
  'minute',
  'token',
  'character',
  'megapixel',
  'credit',
] as const
type PriceUnit = (typeof PRICE_UNITS)[number]

type ValueSource = 'input' | 'output' | 'usage'

/** A value of the answer. */
export interface AnswerField {
  readonly from: Exclude<ValueSource, 'input'>
  readonly path: JsonPath
}

/** `fallback` where there is no value at the path: for the input, what is sent to the provider in its place. */
export interface ValueAt {
  readonly from: ValueSource
  readonly path: JsonPath
  readonly fallback: string | number | boolean | null
}

/**
 * How many. `measure` says what of the value counts. An input may leave a number to the provider (`"auto"`, -1): it is then
 * open between `min` and `max`, and counts what the answer says at `actual`, else the fallback.
 */
export interface Quantity extends ValueAt {
  readonly measure: 'number' | 'characters' | 'items'
  /** The least that is counted where the input does not state a number. */
  readonly min: number
  /** The most it can be, for a hold before the result is known; null: only what the input states is taken. */
  readonly max: number | null
  readonly actual: AnswerField | null
  /** Fields of the input that keep the provider below `max`. */
  readonly limits: readonly Limit[]
}

/** The number at the path; with `values`, the number that they give for the text at the path. Anything else limits nothing. */
export interface Limit {
  readonly path: JsonPath
  readonly fallback: ValueAt['fallback']
  readonly values: ReadonlyMap<string, number> | null
}

/** One rate, or one per value of a field. Rates are millionths of a US dollar and may be fractions of one. */
export type Rate =
  | { readonly kind: 'fixed'; readonly micros: number }
  | {
      readonly kind: 'table'
      readonly by: readonly ValueAt[]
      /** Keyed by the values joined with `|`; `*` for everything else. */
      readonly micros: ReadonlyMap<string, number>
    }

export interface PricePart {
  readonly unit: PriceUnit
  readonly rate: Rate
  /** The rate is for so many of the unit: 1,000,000 for a price per million tokens. */
  readonly per: number
  /** Multiplied with each other; none: once. */
  readonly times: readonly Quantity[]
}

export type PriceRule =
  | { readonly kind: 'free' }
  | { readonly kind: 'sum'; readonly parts: readonly PricePart[] }
  /** The provider's own figure is charged, up to `holdMicros`, which is set aside meanwhile. */
  | { readonly kind: 'reported'; readonly holdMicros: number }
  | { readonly kind: 'unknown'; readonly reason: string; readonly holdMicros: number }

/** Whether the rate depends on the answer. */
export function needsAnswer(rate: Rate): boolean {
  return rate.kind === 'table' && rate.by.some(({ from }) => from !== 'input')
}

/**
 * Where a price assumes another default for a field than the schema or the provider's rules do: all of them must agree.
 * `defaultAt` gives the default that they state; undefined: none.
 */
export function findOtherDefaults(rule: PriceRule, defaultAt: (path: JsonPath) => unknown): readonly string[] {
  return sourcesOf(rule).flatMap(({ from, path, fallback = null }) => {
    const stated = from === 'input' && fallback !== null ? defaultAt(path) : undefined
    if (stated === undefined || stated === null || String(stated) === String(fallback)) return []
    return [
      `${writeJsonPath(path)} is ${JSON.stringify(stated)} by default, and the price counts ${JSON.stringify(fallback)}`,
    ]
  })
}

/** Every value that a rule reads. */
export function sourcesOf(rule: PriceRule): readonly (Pick<ValueAt, 'from' | 'path'> & Partial<ValueAt>)[] {
  if (rule.kind !== 'sum') return []
  return rule.parts.flatMap(({ rate, times }) => [
    ...(rate.kind === 'table' ? rate.by : []),
    ...times,
    ...times.flatMap(({ actual }) => (actual === null ? [] : [actual])),
    ...times.flatMap(({ limits }) => limits.map((limit) => ({ from: 'input' as const, ...limit }))),
  ])
}

// How one model stands in for another, as its data file says.

/** `first` and `second`: of a text such as `1024x1536`. */
export const CONVERSIONS = ['number', 'text', 'first', 'second'] as const
export type Conversion = (typeof CONVERSIONS)[number]

export interface AlternateField {
  readonly from: JsonPath
  /** Of several elements only those that hold, at each path, one of these texts; `*`: anything but nothing. */
  readonly where: readonly { readonly path: JsonPath; readonly is: readonly string[] }[]
  /** What of an element is taken; empty: the whole. */
  readonly take: JsonPath
  /** In place of `take`: a data URI of the media type and the base64 at these two paths. */
  readonly dataUri: { readonly type: JsonPath; readonly data: JsonPath } | null
  /** Names joined by dots. */
  readonly to: readonly string[]
  readonly as: Conversion | null
  /** By the text of a value; null: it is left out. A value that is missing here cannot be translated, unless `as` converts it. */
  readonly values: Readonly<Record<string, Json>> | null
  /** Several texts become one with this between them; null: there may be one only, but for lists. */
  readonly join: string | null
  /** All that is found becomes a list. */
  readonly isList: boolean
}

export interface LeftOut {
  readonly field: JsonPath
  /** Only these values; null: any. */
  readonly is: readonly string[] | null
  readonly reason: string
}

export interface Alternate {
  /** The id of the model that it stands in for. */
  readonly of: string
  readonly fields: readonly AlternateField[]
  /** Stands in every translated input, unless a field was put there. */
  readonly set: JsonRecord
  /** What is left out, and callers are told why. */
  readonly drop: readonly LeftOut[]
  /** What carries nothing for this provider, or says what it does anyway: left out without a word. */
  readonly ignore: readonly LeftOut[]
  /** What must not be lost: such an input is not served. */
  readonly refuse: readonly LeftOut[]
  /** The other model's answer, with places for what this one's says. */
  readonly answer: Json
  /** An answer of this provider, to check `answer` with. */
  readonly answerExample: JsonRecord | null
}
