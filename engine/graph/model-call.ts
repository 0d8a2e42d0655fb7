/** The request of a node that runs a provider's model, and the answer. The owner of the engine decides how models are run. */
import type { JsonValue } from '../../lib/json/lossless-json.ts'

export interface ModelCall {
  /** The canonical id, `{provider}/{model}`. */
  readonly model: string
  readonly input: JsonValue
  /** PNG files that belong to the input. */
  readonly images: readonly Uint8Array<ArrayBuffer>[]
  /** Identifies the call within the run. It is the same when the graph is run again, so that a repeated run does not pay twice. */
  readonly key: string
}

/** Pictures that one answer has at most. */
export const MAX_MODEL_IMAGES = 64

export interface ModelAnswer {
  /** The provider's answer. */
  readonly output: JsonValue
  /** Image files that belong to it, in any format that can be decoded. */
  readonly images: readonly Uint8Array[]
}
