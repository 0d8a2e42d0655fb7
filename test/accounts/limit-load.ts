/**
 * Many submitters and many claimers on accounts with small limits. The load watches from outside, between any two steps,
 * whether an account ever runs more than it may; as a process of its own it can be killed at any moment.
 *
 * As a script: `limit-load.ts <folder>` works until it is killed. It writes a point for each job that a worker let go of.
 */
import { randomUUID } from 'node:crypto'
import { writeSync } from 'node:fs'
import { createUuidV7 } from '../../lib/ids.ts'
import { openSqliteStore, type SqliteStore } from '../../src/adapters/store/sqlite/open-sqlite-store.ts'

export const LIMITS: Readonly<Record<string, number>> = { one: 1, three: 3, five: 5 }
export const PRICE = { perSecondMicros: 1_000_000, minimumMicros: 10, holdMicros: 100 }
const ACCOUNTS = Object.keys(LIMITS)
const POOL = 'limits'
const LEASE_MS = 60_000
const newJobId = createUuidV7(Date.now)

export async function prepareAccounts(store: SqliteStore): Promise<void> {
  for (const id of ACCOUNTS) {
    const account = { id, name: id, tier: 'free', overrides: {}, status: 'active', createdAt: new Date() } as const
    const limits = { maxRunning: LIMITS[id], maxQueued: 1_000_000, creditFloor: 0 }
    await store.directory.create(account, limits)
    await store.ledger.grant({ id: `gift-${id}`, accountId: id, micros: 1e12, at: new Date(), memo: '' })
  }
}

async function submit(store: SqliteStore, accountId: string): Promise<void> {
  const createdAt = new Date()
  const outcome = await store.jobs.submit(
    {
      ...{ id: newJobId(), accountId, pool: POOL, priority: 0, metadata: {}, createdAt },
      expiresAt: new Date(createdAt.getTime() + 86_400_000),
      ...{ workflow: '{}', inputs: [], needsExtraData: false, sealedExtraData: null, needs: '', price: PRICE },
    },
    null,
  )
  if (outcome.outcome !== 'queued') throw new Error(`a submit was answered with ${outcome.outcome}`)
}

/** What runs as the workers see it: counted from the moment a claim is answered until its end is asked for. */
export class Watch {
  readonly running = new Map<string, number>(ACCOUNTS.map((id) => [id, 0]))
  readonly most = new Map<string, number>(ACCOUNTS.map((id) => [id, 0]))

  enter(accountId: string): void {
    const count = (this.running.get(accountId) ?? 0) + 1
    this.running.set(accountId, count)
    this.most.set(accountId, Math.max(count, this.most.get(accountId) ?? 0))
    if (count > LIMITS[accountId]) throw new Error(`${count} jobs of ${accountId} run at once`)
  }

  leave(accountId: string): void {
    this.running.set(accountId, (this.running.get(accountId) ?? 0) - 1)
  }
}

async function claimAndEnd(store: SqliteStore, watch: Watch): Promise<boolean> {
  const now = new Date()
  const leaseId = randomUUID()
  const leaseUntil = new Date(now.getTime() + LEASE_MS)
  const claim = await store.jobs.claim({
    ...{ pool: POOL, workerId: leaseId, leaseId, leaseUntil, now },
    engines: [{ engineId: 'engine', lanes: null }],
    maxOvertakes: 0,
  })
  if (claim === null) return false
  const { id, accountId } = claim.job
  watch.enter(accountId)
  const lease = { jobId: id, leaseId }
  await store.jobs.commit(lease, { outputsReused: false })
  watch.leave(accountId)
  // Every way in which a worker lets go of a job.
  const [first] = leaseId
  if (first === '0') await store.jobs.release([lease], new Date())
  else {
    const error = { code: 'node_execution_error', message: '', nodeId: null, classType: null, traceback: null }
    const end = first < '8' ? ({ status: 'succeeded', error: null } as const) : ({ status: 'failed', error } as const)
    await store.jobs.commit(lease, { finish: { ...end, from: ['running', 'canceling'], at: new Date() } })
  }
  return true
}

export interface LoadOptions {
  readonly submitters: number
  readonly claimers: number
  /** Jobs per submitter. */
  readonly each: number
  readonly onEnd?: () => void
}

/** Runs until every job has ended and looks at the stored counters all the while. */
export async function runLoad(
  store: SqliteStore,
  { submitters, claimers, each, onEnd = () => {} }: LoadOptions,
): Promise<Watch> {
  const watch = new Watch()
  let submitting = submitters
  const work = [
    ...Array.from({ length: submitters }, async (_, index) => {
      for (let count = 0; count < each; count++) await submit(store, ACCOUNTS[index % ACCOUNTS.length])
      submitting--
    }),
    ...Array.from({ length: claimers }, async () => {
      for (let hasEnded = false; hasEnded || submitting > 0 || (await hasWork(store)); ) {
        hasEnded = await claimAndEnd(store, watch)
        if (hasEnded) onEnd()
      }
    }),
    sample(store, () => submitting > 0 || [...watch.running.values()].some((count) => count > 0)),
  ]
  await Promise.all(work)
  return watch
}

async function hasWork(store: SqliteStore): Promise<boolean> {
  const { queued, running } = await store.jobs.countByStatus()
  return queued + running > 0
}

/** The counters as the store has them, at as many instants as can be had. */
async function sample(store: SqliteStore, isOn: () => boolean): Promise<void> {
  while (isOn()) {
    for (const id of ACCOUNTS) {
      const use = await store.accounts.findUse(id)
      if ((use?.running ?? 0) > LIMITS[id]) throw new Error(`${use?.running} jobs of ${id} run at once`)
    }
  }
}

if (process.argv[1] === import.meta.filename) {
  await using store = await openSqliteStore({ directory: process.argv[2] })
  await prepareAccounts(store)
  // What the process before held is held by nobody now.
  const error = { code: 'worker_lost', message: '', nodeId: null, classType: null, traceback: null }
  const [now, lapsedBefore] = [new Date(), new Date(Date.now() + 1e9)]
  await store.jobs.reap({ now, lapsedBefore, maxAttempts: 3, error })
  await runLoad(store, { submitters: 200, claimers: 50, each: 1_000_000, onEnd: () => writeSync(1, '.') })
}
