/**
 * How a node of an engine calls a partner's model: through a plain function that the composition root hands in. Prices, rights and
 * what a model is are known behind it; an engine only passes the request on and the answer back.
 */

import type { ModelNode } from '../../../engine/graph/model-nodes.ts'
import type { JsonValue } from '../../../lib/json/lossless-json.ts'

/** What a node asks for. */
export interface ModelCall {
  /** The canonical id, `{provider}/{model}`. */
  readonly model: string
  readonly input: JsonValue
  /** PNG files that belong to the input. */
  readonly images: readonly Uint8Array<ArrayBuffer>[]
  /** Which call of the run this is: the same for every attempt of a job, so that no attempt pays twice. */
  readonly key: string
}

export interface ModelAnswer {
  /** The provider's answer. */
  readonly output: JsonValue
  /** Image files that belong to it, in any format that can be decoded. */
  readonly images: readonly Uint8Array[]
}

export interface ModelRequest extends ModelCall {
  readonly accountId: string
  readonly jobId: string
  /** Credentials of the submit. Never stored, never logged. */
  readonly extraData: Readonly<Record<string, unknown>> | null
}

/** The models that a job would run, for the check when it is submitted. */
export interface ModelWish {
  readonly accountId: string
  /** Of the credential that submits; null: everything its account may. */
  readonly scopes: ReadonlySet<string> | null
  readonly extraData: Readonly<Record<string, unknown>> | null
  readonly nodes: readonly ModelNode[]
}

/** Models for nodes: asked for once when a job is submitted, and again for every call. */
export interface NodeModels {
  /** Throws forbidden where a call of these nodes would be refused, as far as it can be known before they run. */
  mustRun(wish: ModelWish): Promise<void>
  readonly run: RunModel
}

/** Throws ServiceError with a message that is safe to show. */
export type RunModel = (request: ModelRequest, options: { readonly signal: AbortSignal }) => Promise<ModelAnswer>

/** The same within one run. */
export type RunModelCall = (call: ModelCall) => Promise<ModelAnswer>
