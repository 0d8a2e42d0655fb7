/** What a node that runs a model of a provider asks for, and what it is given. Who runs it is left to the engine's owner. */
import type { JsonValue } from '../../lib/json/lossless-json.ts'

export interface ModelCall {
  /** The canonical id, `{provider}/{model}`. */
  readonly model: string
  readonly input: JsonValue
  /** PNG files that belong to the input. */
  readonly images: readonly Uint8Array<ArrayBuffer>[]
  /** Which call of the run this is: the same whenever the same graph is run again, so that no repetition pays twice. */
  readonly key: string
}

export interface ModelAnswer {
  /** The provider's answer. */
  readonly output: JsonValue
  /** Image files that belong to it, in any format that can be decoded. */
  readonly images: readonly Uint8Array[]
}
