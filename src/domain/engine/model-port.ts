/**
 * How a node of an engine calls a partner's model: through a plain function that the composition root hands in. Prices, rights and
 * what a model is are known behind it; an engine only passes the request on and the answer back.
 */
import type { ModelAnswer, ModelCall, ModelNode } from '../../../engine/graph/model-nodes.ts'

export interface ModelRequest extends ModelCall {
  readonly accountId: string
  readonly jobId: string
  /** Credentials of the submit. Never stored, never logged. */
  readonly extraData: Readonly<Record<string, unknown>> | null
}

/** The models that a job would run, for the check when it is submitted. */
export interface ModelWish {
  readonly accountId: string
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
