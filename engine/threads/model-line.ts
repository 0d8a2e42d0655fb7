/** Calls of models on their way from the engine thread to the main thread, where the function lives, and back. */

import { parseLosslessJson, stringifyLosslessJson } from '../../lib/json/lossless-json.ts'
import type { Log } from '../../lib/log.ts'
import type { ModelAnswer, ModelCall } from '../../src/domain/engine/model-port.ts'
import { type Refusal, ServiceError } from '../../src/domain/errors.ts'
import { NodeError } from '../node-error.ts'

/** JSON travels as text, because cloning would turn `1.0` into `1`. */
export interface WireModelCall extends Omit<ModelCall, 'input'> {
  readonly inputText: string
}

export type WireModelAnswer =
  | { readonly outputText: string; readonly images: readonly Uint8Array[] }
  | { readonly problem: string; readonly exceptionType: string }

export interface ModelLine {
  run(runId: number, call: ModelCall): Promise<ModelAnswer>
  answered(requestId: number, answer: WireModelAnswer): void
}

/** The engine thread's end. */
export function createModelLine(post: (runId: number, requestId: number, call: WireModelCall) => void): ModelLine {
  const waiting = new Map<number, PromiseWithResolvers<ModelAnswer>>()
  let nextRequestId = 0
  return {
    run(runId, { input, ...rest }) {
      const requestId = nextRequestId++
      const answer = Promise.withResolvers<ModelAnswer>()
      waiting.set(requestId, answer)
      post(runId, requestId, { ...rest, inputText: stringifyLosslessJson(input) })
      return answer.promise
    },
    answered(requestId, answer) {
      const asked = waiting.get(requestId)
      waiting.delete(requestId)
      if ('problem' in answer) asked?.reject(new NodeError(answer.exceptionType, answer.problem))
      else asked?.resolve({ output: parseLosslessJson(answer.outputText), images: answer.images })
    },
  }
}

/** Refusals that clients of a workflow know by a name of their own. */
const EXCEPTION_TYPES: Readonly<Partial<Record<Refusal, string>>> = {
  insufficient_credits: 'InsufficientFundsError',
  subscription_inactive: 'InactiveSubscriptionError',
}

/** A run's way to a model, bound to its account and its credentials; null when the service has no models. */
export type RunModelHere = ((call: ModelCall, options: { readonly signal: AbortSignal }) => Promise<ModelAnswer>) | null

/** The main thread's end. Never rejects. */
export async function answerModelCall(
  { inputText, ...rest }: WireModelCall,
  { runModel, signal, log }: { readonly runModel: RunModelHere; readonly signal: AbortSignal; readonly log: Log },
): Promise<WireModelAnswer> {
  const { model } = rest
  if (runModel === null) {
    return toProblem(`no model router is configured on this server, so the model ${model} cannot be run`)
  }
  try {
    const { output, images } = await runModel({ ...rest, input: parseLosslessJson(inputText) }, { signal })
    return { outputText: stringifyLosslessJson(output), images }
  } catch (error) {
    if (error instanceof ServiceError) return toProblem(error.message, EXCEPTION_TYPES[error.refusal])
    if (!signal.aborted) log.error({ err: error, model }, 'a model could not be run')
    return toProblem(`the model ${model} could not be run`)
  }
}

function toProblem(problem: string, exceptionType = 'RuntimeError'): WireModelAnswer {
  return { problem, exceptionType }
}
