/** One submit of what a schedule runs, and a look at whether it could be made. */
import type { RunEndpoint } from '../endpoints/run-endpoint.ts'
import { type Refusal, ServiceError } from '../errors.ts'
import type { TrySubmit } from '../jobs/submit/dry-run.ts'
import type { Submit } from '../jobs/submit/submit-job.ts'
import type { Schedule, ScheduledWork } from './schedule.ts'

type Submitted = Pick<Schedule, 'accountId' | 'keyId' | 'pool' | 'name' | 'work'>

/** Returns the job's id; where the key has made one already, the id of that one. */
export type SubmitScheduled = (schedule: Submitted, idempotencyKey: string | null) => Promise<string>

/** Throws what will not pass by itself, with the field that it is about. */
export type TryScheduled = (schedule: Submitted) => Promise<void>

interface SubmitScheduledDeps {
  readonly submit: Submit
  readonly trySubmit: TrySubmit
  readonly runs: Pick<RunEndpoint, 'run' | 'tryRun'>
}

const PASSING: ReadonlySet<Refusal> = new Set([
  ...(['queue_full', 'run_limit', 'rate_limited', 'storage_full', 'store_unavailable'] as const),
  ...(['deployment_not_ready', 'check_unavailable', 'overloaded', 'shutting_down'] as const),
])
/** A schedule may be made for later, when there are credits again, or its budget begins anew. */
const LATER: ReadonlySet<Refusal> = new Set(['insufficient_credits', 'spend_limit', 'subscription_inactive'])

/** Whether the same submit may go well in a moment. */
export function isPassing(refusal: Refusal): boolean {
  return PASSING.has(refusal)
}

export function createSubmitScheduled({ submit, trySubmit, runs }: SubmitScheduledDeps): {
  readonly submit: SubmitScheduled
  readonly tryOut: TryScheduled
} {
  const common = ({ accountId, keyId, pool, name, work }: Submitted) => ({
    ...{ accountId, keyId, pool, priority: work.priority, extraData: null },
    // So that the jobs of a schedule can be listed.
    metadata: { schedule: name, ...work.metadata },
  })
  const toCall = (schedule: Submitted, reference: string) => ({
    ...{ ...common(schedule), reference, endpoints: null, inputs: schedule.work.inputs ?? {} },
  })

  return {
    async submit(schedule, idempotencyKey) {
      const { endpoint, workflow } = schedule.work
      try {
        if (endpoint !== null) return (await runs.run({ ...toCall(schedule, endpoint), idempotencyKey })).job.id
        return (await submit({ ...common(schedule), workflow: workflow ?? undefined, idempotencyKey })).id
      } catch (error) {
        const made = error instanceof ServiceError && error.refusal === 'idempotency_key_reuse'
        const jobId = made ? error.details?.['jobId'] : undefined
        if (typeof jobId === 'string') return jobId
        throw error
      }
    },
    async tryOut(schedule) {
      const { endpoint, workflow } = schedule.work
      const field = fieldOf(schedule.work)
      const tried = await (endpoint === null
        ? trySubmit({ ...common(schedule), workflow: workflow ?? undefined, idempotencyKey: null })
        : runs.tryRun({ ...toCall(schedule, endpoint), idempotencyKey: null })
      ).catch((error: unknown) => {
        throw about(field, error)
      })
      const wrong = tried.complaints.find(({ refusal }) => !PASSING.has(refusal) && !LATER.has(refusal))
      if (wrong !== undefined) throw about(field, wrong)
    },
  }
}

function fieldOf({ endpoint }: ScheduledWork): string {
  return endpoint === null ? 'workflow' : 'endpoint'
}

/** What is not there is a wrong field here: the address of the request itself is right. */
function about(field: string, error: unknown): unknown {
  if (!(error instanceof ServiceError)) return error
  const { refusal, message, details } = error
  const options = { details: { field: refusal === 'invalid_input' ? 'inputs' : field, ...details }, cause: error }
  return refusal === 'not_found'
    ? new ServiceError('invalid_field', `${field} cannot be run: ${message}`, options)
    : new ServiceError(refusal, message, options)
}
