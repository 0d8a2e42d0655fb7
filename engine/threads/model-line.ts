/** Calls of models on their way from the engine thread to the main thread, where the function lives, and back. */

import { parseLosslessJson, stringifyLosslessJson } from '../../lib/json/lossless-json.ts'
import type { Log } from '../../lib/log.ts'
import type { ModelAnswer, ModelCall } from '../graph/model-nodes.ts'
import { NodeError } from '../node/node-error.ts'

/** JSON travels as text, because cloning would turn `1.0` into `1`. */
export interface WireModelCall extends Omit<ModelCall, 'input'> {
  readonly inputText: string
}

export type WireModelAnswer =
  | { readonly outputText: string; readonly images: readonly Uint8Array[] }
  | { readonly problem: string; readonly exceptionType: string }

interface ModelLine {
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

/** Thrown by a RunModel to fail the node in these words. */
export class ModelRefusedError extends Error {
  /** The exception that the node fails with. */
  readonly exceptionType: string

  constructor(message: string, options: { readonly exceptionType?: string; readonly cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.name = 'ModelRefusedError'
    this.exceptionType = options.exceptionType ?? 'RuntimeError'
  }
}

/**
 * Has a model do work for a node. The message of a ModelRefusedError reaches whoever reads the run; of any other error only
 * that the model could not be run.
 */
export type RunModel = (call: ModelCall, options: { readonly signal: AbortSignal }) => Promise<ModelAnswer>

/** The main thread's end. Never rejects. */
export async function answerModelCall(
  { inputText, ...rest }: WireModelCall,
  { runModel, signal, log }: { readonly runModel: RunModel | null; readonly signal: AbortSignal; readonly log: Log },
): Promise<WireModelAnswer> {
  const { model } = rest
  if (runModel === null) {
    return toProblem(`no model router is configured on this server, so the model ${model} cannot be run`)
  }
  try {
    const { output, images } = await runModel({ ...rest, input: parseLosslessJson(inputText) }, { signal })
    return { outputText: stringifyLosslessJson(output), images }
  } catch (error) {
    if (error instanceof ModelRefusedError) return toProblem(error.message, error.exceptionType)
    if (!signal.aborted) log.error({ err: error, model }, 'a model could not be run')
    return toProblem(`the model ${model} could not be run`)
  }
}

function toProblem(problem: string, exceptionType = 'RuntimeError'): WireModelAnswer {
  return { problem, exceptionType }
}
