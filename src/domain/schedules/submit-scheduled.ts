/** One submit of what a schedule runs, and a look at whether it could be made. */
import type { Scope } from '../accounts/caller.ts'
import type { RunEndpoint } from '../endpoints/run-endpoint.ts'
import { ServiceError } from '../errors.ts'
import type { TrySubmit } from '../jobs/submit/dry-run.ts'
import type { Submit } from '../jobs/submit/submit-job.ts'
import { isForLater, isPassing } from '../jobs/submit/submit-refusals.ts'
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

/** What a credential needs to have others run its work. */
export function scopesFor({ endpoint }: Pick<ScheduledWork, 'endpoint'>): readonly Scope[] {
  return endpoint === null ? ['jobs:write'] : ['jobs:write', 'endpoints:run']
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
      const wrong = tried.complaints.find(({ refusal }) => !isPassing(refusal) && !isForLater(refusal))
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
