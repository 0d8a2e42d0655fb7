/**
 * One model of the catalogue, as its data file says: what it is called, what it takes and gives, what it costs, and, in
 * `adapter`, how its provider is to be spoken to. Only the provider's adapter reads that last part.
 */
import type { PriceRule } from '../pricing/price-rule.ts'

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

export const MODALITIES = ['text', 'image', 'video', 'audio'] as const
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

/** Which leaves of the result are copied to our storage, in the notation of json-path.ts, and for how long they are served. */
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
  /** null: the router's own. */
  readonly deadlineMs: number | null
  readonly hosting: Hosting | null
  /** Read by the provider's adapter alone. */
  readonly adapter: JsonRecord
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
