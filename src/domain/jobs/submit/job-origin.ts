/**
 * What is kept of a submit, to be shown with the job later: the key that it came with, the files that its graph names, and where
 * an editor had put its nodes. Bounded, and without a word that the run needs: what the run needs goes with its end.
 */
import { readTraceContext, type TraceContext, toTraceparent } from '../../../../lib/tracing/trace-context.ts'
import type { JobInput } from '../job.ts'
import type { GraphLayout } from './graph-layout.ts'

export interface JobOrigin {
  readonly idempotencyKey: string | null
  readonly inputs: readonly JobInput[]
  /** There were more files than are listed. */
  readonly areInputsCut: boolean
  readonly layout: GraphLayout | null
  /** The trace that the submit belonged to; null: none. */
  readonly trace: TraceContext | null
}

export const NO_ORIGIN: JobOrigin = {
  ...{ idempotencyKey: null, inputs: [], areInputsCut: false, layout: null, trace: null },
}

const MAX_INPUTS = 200
const MAX_NAME_LENGTH = 500

/** null: there is nothing to keep. */
export function toOrigin(
  idempotencyKey: string | null,
  inputs: readonly JobInput[],
  layout: GraphLayout | null,
  trace: TraceContext | null,
): JobOrigin | null {
  if (idempotencyKey === null && inputs.length === 0 && layout === null && trace === null) return null
  const kept = inputs.filter(({ name }) => name.length <= MAX_NAME_LENGTH).slice(0, MAX_INPUTS)
  return { idempotencyKey, inputs: kept, areInputsCut: kept.length < inputs.length, layout, trace }
}

/** As it is stored: what is not there is left out, and lists are shorter than objects. */
interface StoredOrigin {
  readonly key?: string
  readonly inputs?: readonly (readonly [name: string, hash: string, sizeBytes: number, contentType: string])[]
  readonly areInputsCut?: true
  readonly layout?: GraphLayout
  readonly trace?: StoredTrace
}

/** As its two headers were. */
type StoredTrace = readonly [traceparent: string, tracestate?: string]

export function writeOrigin({ idempotencyKey, inputs, areInputsCut, layout, trace }: JobOrigin): string {
  // With traces on, most jobs have this alone. It has no letter that JSON writes otherwise.
  const isTraceAlone = trace !== null && idempotencyKey === null && inputs.length === 0 && layout === null
  if (isTraceAlone && trace.state === '') return `{"trace":["${toTraceparent(trace)}"]}`
  const stored: StoredOrigin = {
    ...(idempotencyKey !== null && { key: idempotencyKey }),
    ...(inputs.length > 0 && {
      inputs: inputs.map(({ name, hash, sizeBytes, contentType }) => [name, hash, sizeBytes, contentType] as const),
    }),
    ...(areInputsCut && { areInputsCut }),
    ...(layout !== null && { layout }),
    ...(trace !== null && { trace: writeTrace(trace) }),
  }
  return JSON.stringify(stored)
}

export function readOrigin(text: string | null): JobOrigin {
  if (text === null) return NO_ORIGIN
  const { key = null, inputs = [], areInputsCut = false, layout = null, trace } = JSON.parse(text) as StoredOrigin
  return {
    idempotencyKey: key,
    inputs: inputs.map(([name, hash, sizeBytes, contentType]) => ({ name, hash, sizeBytes, contentType })),
    areInputsCut,
    layout,
    trace: trace === undefined ? null : readTraceContext(...trace),
  }
}

function writeTrace(trace: TraceContext): StoredTrace {
  return trace.state === '' ? [toTraceparent(trace)] : [toTraceparent(trace), trace.state]
}
