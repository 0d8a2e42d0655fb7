/** What is done to many jobs at once, over the jobs of the service. */
import type { Clock } from '../../../lib/clock.ts'
import { newUuidV4 } from '../../../lib/ids.ts'
import type { Log } from '../../../lib/log.ts'
import { createDoorbell } from '../../../lib/waiting/sleep.ts'
import { createAuthority } from '../../domain/accounts/keys/authority.ts'
import { DEFAULT_POOL } from '../../domain/deployments/deployment.ts'
import { isStoreAway } from '../../domain/errors.ts'
import { type BulkActions, createBulkActions } from '../../domain/jobs/bulk/manage-bulk.ts'
import { createRunBulk } from '../../domain/jobs/bulk/run-bulk.ts'
import { createSelectJobs } from '../../domain/jobs/bulk/select-jobs.ts'
import { createRerunJob, type RerunJob } from '../../domain/jobs/submit/rerun-job.ts'
import type { Store } from '../../domain/store.ts'
import type { SharedAccounts } from '../open-accounts.ts'
import type { JobActions } from './job-actions.ts'

interface BulkParts {
  readonly store: Pick<Store, 'bulkActions' | 'summaries' | 'apiKeys' | 'audited'>
  readonly jobs: Pick<JobActions, 'submit' | 'reader' | 'records' | 'cancel' | 'queue'>
  /** null: the local kind, where nothing can be withdrawn. */
  readonly shared: Pick<SharedAccounts, 'accounts'> | null
  readonly clock: Clock
  readonly log: Log
}

export interface OpenedBulk extends AsyncDisposable {
  readonly actions: BulkActions
  readonly rerun: RerunJob
  /** Begins to do what was asked for, beside all other processes that take requests. */
  start(): void
}

export function openBulk({ store, jobs, shared, clock, log }: BulkParts): OpenedBulk {
  const { submit, reader, records, cancel, queue } = jobs
  const rerun = createRerunJob({ reader, records, summaries: store.summaries, submit, clock, commonPool: DEFAULT_POOL })
  const run = createRunBulk({
    ...{ store: store.bulkActions, cancel, queue, rerun, newId: newUuidV4, clock, log },
    audited: ({ id, actor }, { action, item: { jobId, accountId } }) =>
      store.audited({
        ...{ actor: actor ?? 'operator', action, subject: jobId, at: clock.now() },
        details: { account_id: accountId, of_many: true, bulk_action: id },
      }),
    mayRun:
      shared === null ? async () => null : createAuthority({ accounts: shared.accounts, keys: store.apiKeys, clock }),
  })
  const rounds = createRounds(run, log)
  const select = createSelectJobs({ summaries: store.summaries, clock })
  return {
    actions: createBulkActions({ store: store.bulkActions, select, newId: newUuidV4, clock, onCreated: rounds.soon }),
    rerun,
    ...rounds,
  }
}

// What another process was asked for is seen after so long; what this one was asked for, at once.
const LOOK_MS = 1000

function createRounds(run: (signal: AbortSignal) => Promise<unknown>, log: Log) {
  const bell = createDoorbell()
  const ending = new AbortController()
  const { signal } = ending
  let rounds: Promise<void> | null = null

  async function goRound(): Promise<void> {
    while (!signal.aborted) {
      await bell.wait(LOOK_MS, signal)
      try {
        await run(signal)
      } catch (error) {
        if (isStoreAway(error)) log.debug({ err: error }, 'bulk actions wait for the store, which is away')
        else log.error({ err: error }, 'a round of bulk actions failed; the next one tries again')
      }
    }
  }

  return {
    soon: () => bell.ring(),
    start() {
      if (!signal.aborted) rounds ??= goRound()
    },
    async [Symbol.asyncDispose]() {
      ending.abort(null)
      await rounds
    },
  }
}
