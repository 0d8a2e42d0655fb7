/** Who runs what, decided by three processes at once: limits of accounts hold, and the order is the one of a single process. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { createClient } from '../../../lib/postgres/driver.ts'
import type { Claim } from '../../../src/domain/jobs/job-store.ts'
import { at, ONE_LANE, START, Tenant } from '../../contracts/store-under-test.ts'
import { askAll, shareCluster } from '../../support/cluster/share-cluster.ts'
import type { Cluster } from '../../support/cluster/store-process.ts'

type RemoteStore = Cluster['stores'][number]

function claimFrom({ jobs }: RemoteStore, pool: string, now = START): Promise<Claim | null> {
  return jobs.claim({
    ...{ pool, workerId: 'worker', leaseId: randomUUID(), leaseUntil: new Date(now.getTime() + 30_000), now },
    ...{ engines: ONE_LANE.engines, maxOvertakes: 0 },
  })
}

function succeed({ jobs }: RemoteStore, { job, leaseId }: Claim, when = at(1000)) {
  const finish = { status: 'succeeded', from: ['running', 'canceling'], at: when, error: null } as const
  return jobs.commit({ jobId: job.id, leaseId }, { finish })
}

describe('three processes on one database claim', () => {
  const cluster = shareCluster()

  test('never more jobs of an account than it may run, and all of them in the end', async () => {
    const first = await Tenant.create(cluster().stores[0], { maxRunning: 1 })
    const tenants = [first, await first.neighbour({ maxRunning: 2 }), await first.neighbour({ maxRunning: 3 })]
    const limits = new Map(tenants.map(({ accountId }, index) => [accountId, index + 1]))
    const each = 20
    await Promise.all(tenants.flatMap((tenant) => Array.from({ length: each }, () => tenant.submit(ONE_LANE.job))))
    const left = new Map(tenants.map(({ accountId }) => [accountId, each]))
    const held = new Map(tenants.map(({ accountId }) => [accountId, 0]))
    const isDone = () => [...left.values()].every((count) => count === 0)

    const work = async (store: RemoteStore) => {
      while (!isDone()) {
        const claim = await claimFrom(store, first.pool)
        if (claim === null) continue
        const { accountId } = claim.job
        held.set(accountId, (held.get(accountId) ?? 0) + 1)
        // While it waits here, the others claim.
        assert.equal((await store.jobs.find(accountId, claim.job.id, START))?.status, 'running')
        const atOnce = held.get(accountId) ?? 0
        assert.ok(atOnce <= (limits.get(accountId) ?? 0), 'more at once than the limit')
        // Counted as ended before the store is told: it must not hand out the room earlier than that.
        held.set(accountId, atOnce - 1)
        assert.equal((await succeed(store, claim)).outcome, 'committed')
        left.set(accountId, (left.get(accountId) ?? 0) - 1)
      }
    }
    // Each look sees one moment of the database.
    const look = async () => {
      const client = createClient({ url: cluster().url })
      await client.connect()
      try {
        while (!isDone()) {
          const { rows } = await client.query<{ account_id: string; jobs: string; running: string }>(
            `SELECT account_id, count(*) AS jobs, min(running) AS running FROM job JOIN account_load USING (account_id)
             WHERE status IN ('running', 'canceling') GROUP BY account_id`,
          )
          for (const { account_id, jobs, running } of rows) {
            assert.equal(jobs, running, 'the counter is what it counts')
            assert.ok(Number(jobs) <= (limits.get(account_id) ?? 100), 'more at once than the limit')
          }
        }
      } finally {
        await client.end()
      }
    }
    await Promise.all([look(), ...Array.from({ length: 9 }, (_, index) => work(cluster().stores[index % 3]))])
    for (const tenant of tenants) assert.deepEqual(await tenant.use(), { running: 0, queued: 0 })
  })

  test('the first jobs by priority and submit order, each once', async () => {
    const tenant = await Tenant.create(cluster().stores[0], { maxRunning: 100 })
    const priorities = [0, 5, 0, 9, 5, 9, 0, 5, 9, 0, 5, 9, 0, 0, 9]
    const ids = new Map<string, number>()
    for (const [place, priority] of priorities.entries()) {
      const { id } = await tenant.submit({ ...ONE_LANE.job, priority })
      ids.set(id, place)
    }
    const expected = [...priorities.keys()].sort((a, b) => priorities[b] - priorities[a] || a - b)
    for (let round = 0; round < expected.length; round += 3) {
      const claims = await askAll(cluster(), 3, (store) => claimFrom(store, tenant.pool))
      const places = claims.map((claim) => ids.get(claim?.job.id ?? '') ?? -1)
      assert.deepEqual(new Set(places), new Set(expected.slice(round, round + 3)))
    }
    assert.equal(await claimFrom(cluster().stores[1], tenant.pool), null)
  })

  test('accounts in turn: each gets its share, however much the others wait', async () => {
    const first = await Tenant.create(cluster().stores[0], { maxRunning: 100 })
    const tenants = [first, await first.neighbour({ maxRunning: 100 }), await first.neighbour({ maxRunning: 100 })]
    const backlogs = [60, 30, 12]
    for (const [index, tenant] of tenants.entries()) {
      await Promise.all(Array.from({ length: backlogs[index] }, () => tenant.submit(ONE_LANE.job)))
    }
    const shares = new Map(tenants.map(({ accountId }) => [accountId, 0]))
    for (let round = 0; round < 10; round += 1) {
      for (const claim of await askAll(cluster(), 3, (store) => claimFrom(store, first.pool))) {
        const { accountId } = claim?.job ?? { accountId: 'none' }
        shares.set(accountId, (shares.get(accountId) ?? 0) + 1)
      }
      // Claims of one round may meet: then an account is ahead by at most what was claimed together.
      const counts = [...shares.values()]
      assert.ok(Math.max(...counts) - Math.min(...counts) <= 3, `${counts}`)
    }
    assert.equal(
      [...shares.values()].reduce((sum, count) => sum + count),
      30,
    )
  })
})
