/**
 * Names for the calls of partner nodes, which bring no Idempotency-Key. A node sends a request again when its connection broke,
 * and a job that lost its engine runs all of its nodes again: both must find the call that was made before and pay nothing more.
 * So equal requests of one job mean one call until its answer was delivered; an equal request after that is another call.
 *
 * What was delivered is remembered for each attempt of a job, and only here. The next attempt begins anew, and gets the answers of
 * the attempt before it one after the other. Requests without a job are told apart by the process that they came to.
 */
import { BoundedMap } from '../../../../lib/bounded-map.ts'

export interface NamedRun {
  readonly jobId: string
  /** Changes with every attempt. */
  readonly attempt: string
}

interface CallName {
  readonly key: string
  /** The caller has its answer. */
  delivered(): void
}

const MAX_REMEMBERED = 10_000

type NameCall = (run: NamedRun | null, accountId: string, request: string) => CallName

/** `processId`: of this process, and of no other. */
export function createCallNames(processId: string): NameCall {
  const delivered = new BoundedMap<string, number>(MAX_REMEMBERED)
  return (run, accountId, request) => {
    const place = `${accountId} ${run === null ? '' : `${run.jobId} ${run.attempt}`} ${request}`
    const number = delivered.get(place) ?? 0
    const owner = run === null ? `process:${processId}` : `job:${run.jobId}`
    return { key: `partner:${owner}:${request}:${number}`, delivered: () => delivered.set(place, number + 1) }
  }
}
