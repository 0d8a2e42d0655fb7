/**
 * Does to each of many jobs what was asked for. Any number of processes may do this at once: an action is held by one of them under a
 * lease, and what became of its jobs is written under that lease alone. A process that dies leaves some jobs that were dealt with and
 * not noted: a cancel and a priority come to the same when they are repeated, and a rerun has a key that every process would give it.
 */
import type { Clock } from '../../../../lib/clock.ts'
import type { NewId } from '../../../../lib/ids.ts'
import type { Log } from '../../../../lib/log.ts'
import type { Authority } from '../../accounts/keys/authority.ts'
import { ServiceError } from '../../errors.ts'
import type { CancelJob } from '../end/cancel-job.ts'
import type { JobStore } from '../job-store.ts'
import type { Queue } from '../queue/manage-queue.ts'
import type { QueueStore } from '../queue/queue-store.ts'
import type { RerunJob } from '../submit/rerun-job.ts'
import { isForLater, isPassing } from '../submit/submit-refusals.ts'
import type { BulkAction, BulkItem, BulkReason } from './bulk-action.ts'
import type { BulkLease, BulkStore, ItemEnd } from './bulk-store.ts'

/** The stores that write what an operator does to a job, with its audit line. */
type AuditBulk = (
  action: Pick<BulkAction, 'id' | 'actor'>,
  change: { readonly action: string; readonly item: BulkItem },
) => { readonly cancels: Pick<JobStore, 'cancel'>; readonly queue: Pick<QueueStore, 'pause' | 'resume' | 'change'> }

interface RunBulkDeps {
  readonly store: Pick<BulkStore, 'findDue' | 'take' | 'readWaiting' | 'note' | 'putOff' | 'end'>
  readonly cancel: CancelJob
  readonly queue: Pick<Queue, 'change'>
  readonly rerun: RerunJob
  readonly audited: AuditBulk
  readonly mayRun: Authority
  readonly newId: NewId
  readonly clock: Clock
  readonly log: Log
}

/** Goes on with all that are at work, until each has ended or has to wait; returns how many it went on with. */
type RunBulk = (signal?: AbortSignal) => Promise<number>

const ACTIONS_AT_ONCE = 4
const JOBS_AT_ONCE = 16
const NOTED = 48
// After so many the next action has its turn.
const MAX_CHUNKS = 20
// A process that dies keeps others from its actions for so long.
const HOLD_MS = 10_000
const LOOK_AGAIN_MS = 5000
const LOOK_LATER_MS = 60_000
// Keys of submits are known for a day: later nobody could tell a job that was submitted from one that was not.
const LIFE_MS = 22 * 60 * 60_000

/** What has to pass before it can go on. */
interface Delay {
  readonly reason: BulkReason
  readonly ms: number
}

type Dealt = { readonly end: ItemEnd } | { readonly delay: Delay }

export function createRunBulk(deps: RunBulkDeps): RunBulk {
  const { store, clock, newId } = deps
  const after = (ms: number) => new Date(clock.now().getTime() + ms)

  /** null: it may go on. */
  async function findObstacle({
    accountId,
    keyId,
    createdAt,
  }: BulkAction): Promise<Delay | { readonly stop: BulkReason } | null> {
    if (clock.now().getTime() - createdAt.getTime() > LIFE_MS)
      return {
        stop: { code: 'timeout', message: 'it could not be finished within 22 hours; ask again for what is left' },
      }
    if (accountId === null) return null
    const lost = await deps.mayRun({ accountId, keyId }, ['jobs:write'])
    if (lost === null) return null
    const reason = { code: lost.code, message: lost.message }
    return lost.isForGood ? { stop: reason } : { reason, ms: LOOK_LATER_MS }
  }

  async function runOne(found: BulkAction, signal: AbortSignal | undefined): Promise<void> {
    const lease: BulkLease = { id: found.id, leaseId: newId() }
    const action = await store.take(lease, clock.now(), after(HOLD_MS))
    if (action === null) return
    for (let chunk = 0; chunk < MAX_CHUNKS && signal?.aborted !== true; chunk += 1) {
      const obstacle = await findObstacle(action)
      if (obstacle !== null && 'stop' in obstacle) return store.end(lease, clock.now(), obstacle.stop)
      if (obstacle !== null) return store.putOff(lease, after(obstacle.ms), obstacle.reason)
      const items = await store.readWaiting(action.id, NOTED)
      if (items.length === 0) return store.end(lease, clock.now(), null)
      const { ends, delay } = await dealWith(deps, action, items)
      if (!(await store.note(lease, ends, clock.now(), after(HOLD_MS)))) return
      if (delay !== null) return store.putOff(lease, after(delay.ms), delay.reason)
    }
    await store.putOff(lease, clock.now(), null)
  }

  return async function runBulk(signal) {
    let count = 0
    while (signal?.aborted !== true) {
      const due = await store.findDue(clock.now(), ACTIONS_AT_ONCE)
      const ends = await Promise.allSettled(due.map((action) => runOne(action, signal)))
      for (const end of ends) if (end.status === 'rejected') throw end.reason
      count += due.length
      if (due.length === 0) break
    }
    return count
  }
}

/** In their order, some at a time. Behind one that has to wait no further one is begun. */
async function dealWith(deps: RunBulkDeps, action: BulkAction, items: readonly BulkItem[]) {
  const ends: ItemEnd[] = []
  let delay: Delay | null = null
  for (let at = 0; at < items.length && delay === null; at += JOBS_AT_ONCE) {
    const some = items.slice(at, at + JOBS_AT_ONCE)
    for (const dealt of await Promise.all(some.map((item) => dealWithOne(deps, action, item)))) {
      if ('end' in dealt) ends.push(dealt.end)
      else delay = dealt.delay
    }
  }
  return { ends, delay }
}

async function dealWithOne(deps: RunBulkDeps, action: BulkAction, item: BulkItem): Promise<Dealt> {
  const { place } = item
  const ended = (outcome: ItemEnd['outcome'], more: Partial<ItemEnd> = {}): Dealt => ({
    end: { place, outcome, madeId: null, code: null, message: null, ...more },
  })
  try {
    const { isDone, madeId } = await act(deps, action, item)
    return ended(isDone ? 'done' : 'skipped', { madeId })
  } catch (error) {
    if (!(error instanceof ServiceError)) {
      deps.log.error(
        { err: error, bulkAction: action.id, job: item.jobId },
        'a job of a bulk action failed unexpectedly',
      )
      return ended('refused', { code: 'internal_error', message: 'the service made a mistake' })
    }
    const { refusal: code, message } = error
    if (code === 'not_found' || code === 'not_waiting') return ended('skipped')
    if (isPassing(code)) return { delay: { reason: { code, message }, ms: LOOK_AGAIN_MS } }
    if (isForLater(code)) return { delay: { reason: { code, message }, ms: LOOK_LATER_MS } }
    return ended('refused', { code, message })
  }
}

interface Done {
  readonly isDone: boolean
  readonly madeId: string | null
}

/** `isDone`: false: there was nothing to do any more. */
async function act(deps: RunBulkDeps, action: BulkAction, item: BulkItem): Promise<Done> {
  const { kind, priority, isOnlyWaiting: isOnlyQueued } = action
  const { accountId, jobId } = item
  // An operator's change of a job has its line in the audit log.
  const audited = (name: string) => (action.accountId === null ? deps.audited(action, { action: name, item }) : null)
  switch (kind) {
    case 'cancel': {
      const through = audited('job.cancel')?.cancels
      const { status } = await deps.cancel(accountId, jobId, { isOnlyQueued, ...(through && { through }) })
      return { isDone: status === 'canceled' || status === 'canceling', madeId: null }
    }
    case 'prioritize': {
      const place = { priority: priority ?? 0 }
      await deps.queue.change(accountId, jobId, { place }, audited('job.change')?.queue)
      return { isDone: true, madeId: null }
    }
    case 'rerun': {
      const { id } = await rerunOnce(deps, action, item)
      return { isDone: true, madeId: id }
    }
    // Its archives are read by whoever asked for it.
    case 'download':
      return { isDone: true, madeId: null }
  }
}

/** Of all tries in all processes one makes a job, which the others find under the key. */
async function rerunOnce(
  { rerun }: RunBulkDeps,
  { id, keyId }: BulkAction,
  { accountId, jobId }: BulkItem,
): Promise<{ readonly id: string }> {
  try {
    return await rerun({ accountId, keyId, jobId, idempotencyKey: `bulk ${id} ${jobId}` })
  } catch (error) {
    const made = error instanceof ServiceError && error.refusal === 'idempotency_key_reuse'
    const madeId = made ? error.details?.['jobId'] : undefined
    if (typeof madeId === 'string') return { id: madeId }
    throw error
  }
}
