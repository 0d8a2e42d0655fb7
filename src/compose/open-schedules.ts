/** Schedules over the jobs and endpoints of the service. */
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { createAuthority } from '../domain/accounts/keys/authority.ts'
import type { RunEndpoint } from '../domain/endpoints/run-endpoint.ts'
import { createHousekeeping } from '../domain/jobs/sweeps/housekeeping.ts'
import { createSchedules, type Schedules } from '../domain/schedules/manage-schedules.ts'
import { createRunSchedules } from '../domain/schedules/run-schedules.ts'
import { createSubmitScheduled } from '../domain/schedules/submit-scheduled.ts'
import type { Store } from '../domain/store.ts'
import type { JobActions } from './jobs/job-actions.ts'
import type { SharedAccounts } from './open-accounts.ts'

interface ScheduleParts {
  readonly store: Pick<Store, 'schedules' | 'apiKeys'>
  readonly jobs: Pick<JobActions, 'submit' | 'trySubmit' | 'reader' | 'cancel'>
  readonly runs: RunEndpoint
  /** null: the local kind, where nothing can be withdrawn. */
  readonly shared: Pick<SharedAccounts, 'accounts'> | null
  readonly clock: Clock
  readonly log: Log
}

export interface OpenedSchedules extends Schedules, AsyncDisposable {
  /** Begins to submit what is due, beside all other processes that take requests. */
  start(): void
}

const LOOK_MS = 1000

export function openSchedules({ store, jobs, runs, shared, clock, log }: ScheduleParts): OpenedSchedules {
  const { submit, tryOut } = createSubmitScheduled({ submit: jobs.submit, trySubmit: jobs.trySubmit, runs })
  const run = createRunSchedules({
    ...{ store: store.schedules, submit, jobs: jobs.reader, cancel: jobs.cancel, clock, log },
    mayRun:
      shared === null ? async () => null : createAuthority({ accounts: shared.accounts, keys: store.apiKeys, clock }),
  })
  const loop = createHousekeeping({ tasks: [{ name: 'run-schedules', runs: 'each', everyMs: LOOK_MS, run }], log })
  return {
    ...createSchedules({ store: store.schedules, submit, tryOut, clock }),
    start: () => loop.start(),
    [Symbol.asyncDispose]: () => loop[Symbol.asyncDispose](),
  }
}
