/**
 * What a job costs at its end. One that succeeded costs its execution time, at least the minimum; one that its workflow or its
 * owner ended costs the time it took. A job that failed on our side or never ran costs nothing.
 */
import type { Micros } from '../../../../lib/text/usd.ts'
import { type PoolPrice, priceOfTime } from '../../credits/prices.ts'
import { isHeld, type JobStatus } from '../transitions.ts'

interface EndedRun {
  readonly from: JobStatus
  readonly to: JobStatus
  readonly errorCode: string | null
  /** The start of the last attempt: earlier ones were lost on our side. */
  readonly startedAt: number | null
  readonly endedAt: number
}

/** Failures that a workflow brings about. Every other code, also one that is forgotten here, counts as ours and costs nothing. */
const OWN_FAILURES: ReadonlySet<string> = new Set([
  'node_execution_error',
  'out_of_memory',
  'timeout',
  'output_too_large',
  'too_many_outputs',
  'storage_quota',
  // The run has used its machine, whatever is thought of what it made.
  'refused_by_policy',
])

export function chargeOf(
  { perSecondMicros, minimumMicros }: Pick<PoolPrice, 'perSecondMicros' | 'minimumMicros'>,
  end: EndedRun,
): Micros {
  if (!isHeld(end.from) || end.startedAt === null) return 0
  const forTime = priceOfTime(perSecondMicros, end.endedAt - end.startedAt)
  if (end.to === 'succeeded') return Math.max(minimumMicros, forTime)
  const isOwn = end.to === 'canceled' || (end.to === 'failed' && OWN_FAILURES.has(end.errorCode ?? ''))
  return isOwn ? forTime : 0
}
