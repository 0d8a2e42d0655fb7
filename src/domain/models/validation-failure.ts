/** One thing that is wrong with an input: where, in words, and as a word that programs compare. */
import type { Json, JsonRecord } from './catalog/model.ts'

export interface ValidationFailure {
  /** Outermost first; `body` stands before the fields of the body. */
  readonly loc: readonly (string | number)[]
  readonly msg: string
  /** An open set: ours are in input-schema.ts, a provider's are passed on unchanged. */
  readonly type: string
  /** The bound that was broken. */
  readonly ctx?: JsonRecord
  /** The rejected value. */
  readonly input?: Json
}
