/**
 * What holds while several processes work on one database: limits, leases, ends and charges. The database itself refuses what must
 * never be, by a check on the counters, so that not even a moment goes unseen.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { openSession } from '../../../../../src/adapters/store/postgres/database/session.ts'
import { isStoreAway } from '../../../../../src/domain/errors.ts'
import type { Claim, Lease } from '../../../../../src/domain/jobs/job-store.ts'
import {
  at,
  hashOf,
  LOST,
  newOutput,
  ONE_LANE,
  START,
  type StoreUnderTest,
  Tenant,
} from '../../../../contracts/store-under-test.ts'
import { withTwoNodes } from '../temporary-store.ts'

const NEVER_OVER = 'ALTER TABLE account_load ADD CONSTRAINT within CHECK (running BETWEEN 0 AND max_running)'
const PRICE = { perSecondMicros: 0, minimumMicros: 7, holdMicros: 10 }

/** Ends every connection that is in the middle of something. */
const CUT = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE datname = current_database() AND application_name = 'atelier' AND state <> 'idle'`

/** The same account and pool, seen from another process. */
function seenFrom(store: StoreUnderTest, { accountId, pool }: Tenant): Tenant {
  return new Tenant(store, accountId, pool)
}

async function metered(
  store: StoreUnderTest,
  query: (text: string, values: unknown[]) => Promise<unknown>,
  maxRunning: number,
) {
  const tenant = await Tenant.create(store, { maxRunning })
  await query('INSERT INTO credit_account (account_id) VALUES ($1)', [tenant.accountId])
  await store.ledger.grant({ id: randomUUID(), accountId: tenant.accountId, micros: 1_000_000, at: START, memo: '' })
  return tenant
}

async function submitMany(tenant: Tenant, count: number, fields: Parameters<Tenant['submit']>[0] = {}): Promise<void> {
  await Promise.all(Array.from({ length: count }, () => tenant.submit(fields)))
}

/** Asks again while the database is away, as workers do. */
async function outlast<Result>(ask: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      if (!isStoreAway(error)) throw error
      await nextTurn()
    }
  }
}

test('eight claimers in two processes take every job once and never exceed a limit', () =>
  withTwoNodes(async ({ stores, query }) => {
    await query(NEVER_OVER)
    const first = await Tenant.create(stores[0], { maxRunning: 3 })
    const tenants = [first, await first.neighbour({ maxRunning: 1 }), await first.neighbour({ maxRunning: 5 })]
    for (const tenant of tenants) await submitMany(tenant, 60, { needs: 'ab'[tenants.indexOf(tenant) % 2] ?? '' })
    const taken: string[] = []
    const engines = [{ engineId: 'one', lanes: [0, 1].map((index) => ({ lane: 'ab'[index] ?? '', rank: 0 as const })) }]
    const work = async (claimer: number) => {
      const tenant = seenFrom(stores[claimer % 2] ?? stores[0], first)
      while (taken.length < 180) {
        const claim = await tenant.claim(claimer < 4 ? { engines } : {})
        if (claim === null) continue
        taken.push(claim.job.id)
        assert.equal((await tenant.succeed({ jobId: claim.job.id, leaseId: claim.leaseId })).outcome, 'committed')
      }
    }
    await Promise.all(Array.from({ length: 8 }, (_, index) => work(index)))
    assert.equal(new Set(taken).size, 180)
    for (const tenant of tenants) assert.deepEqual(await tenant.use(), { running: 0, queued: 0 })
    assert.equal(await stores[0].accounts.repairCounters(), 0)
  }))

test('a run that is finished, canceled, renewed and reaped all at once ends once, and is charged once at most', () =>
  withTwoNodes(async ({ stores, query }) => {
    await query(NEVER_OVER)
    const tenant = await metered(stores[0], query, 40)
    const other = seenFrom(stores[1], tenant)
    const runs: Lease[] = []
    for (let count = 0; count < 40; count += 1) runs.push((await tenant.run({ price: PRICE })).lease)
    const reap = { now: at(30_001), maxAttempts: 1, error: LOST }
    const outcomes = await Promise.all(
      runs.map(async (lease, index) => {
        const finish = tenant.succeed(lease, at(1000))
        const meanwhile = [
          other.store.jobs.cancel(other.accountId, lease.jobId, at(2000)),
          index % 2 === 0 ? other.store.jobs.renew([lease], at(20_000)) : other.store.jobs.release([lease], at(3000)),
          index % 8 === 0 ? other.store.jobs.reap(reap) : null,
        ]
        await Promise.all(meanwhile)
        return (await finish).outcome
      }),
    )
    await other.store.jobs.reap(reap)
    const done = await query('SELECT id, status FROM job_done')
    assert.equal(new Set(done.map(([id]) => id)).size, done.length, 'no job ended twice')
    const succeeded = done.filter(([, status]) => status === 'succeeded').length
    assert.equal(succeeded, outcomes.filter((outcome) => outcome === 'committed').length)
    const charged = await query(`SELECT count(*) FROM ledger_entry WHERE kind = 'settle'`)
    assert.equal(Number(charged[0]?.[0]), succeeded)
    assert.equal(await stores[0].accounts.repairCounters(), 0)
    assert.deepEqual((await stores[0].ledger.check()).faults, [])
  }))

test('connections that are ended during commits lose no end, write none twice and charge none twice', () =>
  withTwoNodes(async ({ stores, query }) => {
    await query(NEVER_OVER)
    const jobs = 120
    const tenants = [await metered(stores[0], query, 4), await metered(stores[0], query, 4)]
    for (const tenant of tenants) await submitMany(tenant, jobs / 2, { price: PRICE })
    const ended: string[] = []
    const work = async (claimer: number) => {
      const tenant = seenFrom(stores[claimer % 2] ?? stores[0], tenants[claimer % 4 < 2 ? 0 : 1] as Tenant)
      for (
        let claim = await outlast(() => tenant.claim());
        claim !== null;
        claim = await outlast(() => tenant.claim())
      ) {
        const lease = { jobId: claim.job.id, leaseId: claim.leaseId }
        const outputs = [newOutput({ hash: hashOf(claim.job.id) })]
        const finish = { status: 'succeeded', from: ['running'], at: at(1), error: null } as const
        const outcome = await outlast(() => tenant.store.jobs.commit(lease, { outputs, finish }))
        assert.equal(outcome.outcome, 'committed')
        // By jobs ended, so that there is always some way on between two cuts.
        if (ended.push(claim.job.id) % 3 === 0) await query(CUT)
      }
    }
    while (ended.length < jobs) {
      await Promise.all(Array.from({ length: 8 }, (_, index) => work(index)))
      // What was taken by claims that were never answered.
      await outlast(() => stores[0].jobs.reap({ now: at(30_001), maxAttempts: 1000, error: LOST }))
    }
    assert.equal(new Set(ended).size, jobs, 'every end was acknowledged exactly once')
    const done = await query('SELECT id, status, output_count FROM job_done')
    assert.equal(done.length, jobs)
    assert.ok(done.every(([, status, outputs]) => status === 'succeeded' && outputs === 1))
    assert.deepEqual(await query(`SELECT count(*)::int, sum(charged)::int FROM ledger_entry WHERE kind = 'settle'`), [
      [jobs, jobs * PRICE.minimumMicros],
    ])
    assert.deepEqual(await query('SELECT count(*)::int, sum(records)::int FROM account_blob'), [[jobs, jobs]])
    assert.equal(await stores[0].accounts.repairCounters(), 0)
    assert.deepEqual((await stores[0].ledger.check()).faults, [])
  }))

test('batches of ends over several accounts never lock each other out', () =>
  withTwoNodes(async ({ stores, query }) => {
    const first = await metered(stores[0], query, 100)
    const tenants = [first]
    for (let count = 0; count < 4; count += 1) {
      const { accountId } = await metered(stores[0], query, 100)
      tenants.push(new Tenant(stores[0], accountId, first.pool))
    }
    const hashes = ['a', 'b', 'c'].map((name) => hashOf(name))
    for (let round = 0; round < 5; round += 1) {
      for (const tenant of tenants) await submitMany(tenant, 8, { price: PRICE })
      const claims = await Promise.all(Array.from({ length: 40 }, () => first.claim()))
      await Promise.all(
        claims.map((claim, index) => {
          if (claim === null) throw new Error('there is a job for everybody')
          const store = stores[index % 2] ?? stores[0]
          const outputs = [0, 1, 2].map((step) => newOutput({ hash: hashes[(index + step) % 3] as string }))
          return store.jobs.commit(
            { jobId: claim.job.id, leaseId: claim.leaseId },
            { outputs, finish: { status: 'succeeded', from: ['running'], at: at(1), error: null } },
          )
        }),
      )
    }
    await query('SELECT pg_stat_force_next_flush()')
    assert.deepEqual(await query('SELECT count(*)::int FROM job_done'), [[200]])
    // A session tells its figures when it is idle or ends.
    await Promise.all(stores.map((store) => store[Symbol.asyncDispose]()))
    const sessions = `SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'atelier'`
    while ((await query(sessions))[0]?.[0] !== 0) await nextTurn()
    assert.deepEqual(await query('SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()'), [
      [0],
    ])
  }))

test('a claim whose answer was lost finds its job when it is asked again', () =>
  withTwoNodes(async ({ stores }) => {
    const tenant = await Tenant.create(stores[0])
    await submitMany(tenant, 2, { needsExtraData: true, sealedExtraData: new Uint8Array([1]) })
    const request = {
      ...{ pool: tenant.pool, workerId: 'worker', leaseId: randomUUID(), leaseUntil: at(30_000), now: START },
      ...{ engines: [{ engineId: 'engine', lanes: null }], maxOvertakes: 0 },
    }
    const claim = await stores[0].jobs.claim(request)
    assert.deepEqual(await stores[1].jobs.claim(request), claim)
    assert.deepEqual(await tenant.use(), { running: 1, queued: 1 })
  }))

test('a claim that waits for a lock holds up no other for long, and one that comes to its turn late takes nothing', () =>
  withTwoNodes(async ({ stores: [store], url, query }) => {
    const stuck = await Tenant.create(store)
    const free = await stuck.neighbour()
    const job = await stuck.submit(ONE_LANE.job)
    const { engines } = ONE_LANE
    await using locker = await openSession({ url })
    await locker.client.query('BEGIN')
    await locker.client.query('SELECT 1 FROM account_load WHERE account_id = $1 FOR UPDATE', [stuck.accountId])
    const stalled = stuck.claim({ engines })
    const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
    while ((await query(waiting)).length === 0) await nextTurn()
    const other = await free.submit(ONE_LANE.job)
    const [late, inTime] = await Promise.all([free.claim({ engines, leaseMs: 1_000 }), free.claim({ engines })])
    assert.equal(late, null)
    assert.equal(inTime?.job.id, other.id)
    await locker.client.query('ROLLBACK')
    assert.equal((await stalled)?.job.id, job.id)
  }))

test('a node whose clock is ahead takes no lease that is alive', () =>
  withTwoNodes(async ({ stores }) => {
    const tenant = await Tenant.create(stores[0])
    await tenant.submit({ createdAt: new Date() })
    await tenant.claim({ now: new Date(), leaseMs: 60_000 })
    const now = new Date(Date.now() + 3_600_000)
    assert.deepEqual(await stores[1].jobs.reap({ now, lapsedBefore: now, maxAttempts: 3, error: LOST }), [])
  }))

test('where more accounts wait than a claim looks at, every job is still claimed', () =>
  withTwoNodes(async ({ stores, query }) => {
    const first = await Tenant.create(stores[0])
    const tenants = await Promise.all(Array.from({ length: 120 }, () => first.neighbour({ maxRunning: 1 })))
    // Most of them have no room.
    const [free, full] = [tenants.filter((_, index) => index % 3 === 0), tenants.filter((_, index) => index % 3 > 0)]
    const inLanes = [{ engineId: 'one', lanes: ['a', 'b'].map((lane) => ({ lane, rank: 0 as const })) }]
    for (const engines of [undefined, inLanes]) {
      await Promise.all(tenants.map((tenant, index) => tenant.submit({ needs: index % 2 === 0 ? 'a' : 'b' })))
      await query('UPDATE account_load SET max_running = 0 WHERE account_id = ANY($1)', [
        full.map(({ accountId }) => accountId),
      ])
      const claims: Claim[] = []
      const options = engines === undefined ? {} : { engines }
      for (let claim = await first.claim(options); claim !== null; claim = await first.claim(options))
        claims.push(claim)
      assert.deepEqual(new Set(claims.map(({ job }) => job.accountId)), new Set(free.map(({ accountId }) => accountId)))
      await Promise.all(claims.map(({ job, leaseId }) => first.succeed({ jobId: job.id, leaseId })))
    }
  }))
