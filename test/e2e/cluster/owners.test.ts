/** A process that dies with its runs: others go on with them, nothing ends twice, and the books add up. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { createClient } from '../../../lib/postgres/driver.ts'
import type { Claim } from '../../../src/domain/jobs/job-store.ts'
import { at, LOST, ONE_LANE, START, Tenant } from '../../contracts/store-under-test.ts'
import { shareCluster } from '../../support/cluster/share-cluster.ts'
import { type Cluster, startStoreProcess } from '../../support/cluster/store-process.ts'
import { seededRandom } from '../../support/seeded-random.ts'

type RemoteStore = Cluster['stores'][number]

const PRICE = { perSecondMicros: 100, minimumMicros: 50, holdMicros: 1000 }
const JOBS = 40
const LEASE_MS = 30_000

function claimFrom({ jobs }: RemoteStore, pool: string, now: Date): Promise<Claim | null> {
  return jobs.claim({
    ...{ pool, workerId: 'worker', leaseId: randomUUID(), leaseUntil: new Date(now.getTime() + LEASE_MS), now },
    ...{ engines: ONE_LANE.engines, maxOvertakes: 10 },
  })
}

function finish({ jobs }: RemoteStore, { job, leaseId }: Claim, when: Date) {
  return jobs.commit(
    { jobId: job.id, leaseId },
    { finish: { status: 'succeeded', from: ['running', 'canceling'], at: when, error: null } },
  )
}

describe('of three processes on one database', () => {
  const cluster = shareCluster()

  test('one is killed at any moment: every job ends once, under one owner, and is paid once', async () => {
    const [first, second] = cluster().stores
    const tenant = await Tenant.metered(first, { maxRunning: 100, micros: JOBS * 2000 })
    await Promise.all(Array.from({ length: JOBS }, () => tenant.submit({ ...ONE_LANE.job, price: PRICE })))
    const owners = new Map<string, string>()
    const taken: Claim[] = []
    let clock = START.getTime()
    const now = () => new Date(clock)

    async function end(store: RemoteStore, claim: Claim): Promise<void> {
      assert.equal((await finish(store, claim, now())).outcome, 'committed')
      assert.ok(!owners.has(claim.job.id), 'it had ended already')
      owners.set(claim.job.id, claim.leaseId)
    }
    async function work(store: RemoteStore): Promise<void> {
      for (let claim = await claimFrom(store, tenant.pool, now()); claim !== null; ) {
        await end(store, claim)
        claim = await claimFrom(store, tenant.pool, now())
      }
    }
    /** The leases of the dead are over; whoever comes first gives their jobs back, each once. */
    async function reapAll(): Promise<void> {
      clock += LEASE_MS + 1
      const reaping = { now: now(), maxAttempts: 9, error: LOST }
      const reaped = (await Promise.all([first, second].map(({ jobs }) => jobs.reap(reaping)))).flat()
      assert.equal(new Set(reaped.map(({ jobId }) => jobId)).size, reaped.length)
    }

    for (let kills = 0; kills < 3; kills += 1) {
      const victim = await startStoreProcess(cluster().url)
      const claims = await Promise.all(Array.from({ length: 6 }, () => claimFrom(victim.store, tenant.pool, now())))
      const held = claims.filter((claim) => claim !== null)
      taken.push(...held)
      // It dies while it ends some of them: each of these ends is whole or has never been.
      const ends = Promise.allSettled(held.slice(2).map((claim) => finish(victim.store, claim, now())))
      await Promise.all([victim.kill(), work(first), work(second)])
      await ends
      await reapAll()
      await Promise.all(Array.from({ length: 4 }, () => tenant.submit({ ...ONE_LANE.job, price: PRICE })))
    }
    // The server may still be busy with what the dead had sent.
    for (let use = await tenant.use(); use?.running !== 0 || use.queued !== 0; use = await tenant.use()) {
      await reapAll()
      await Promise.all(cluster().stores.flatMap((store) => [work(store), work(store)]))
    }
    // What the dead would say about jobs that others ended counts for nothing.
    for (const claim of taken.filter(({ job }) => owners.has(job.id))) {
      assert.equal((await finish(second, claim, now())).outcome, 'lost')
    }
    const ended = await listEnded(tenant.accountId)
    assert.equal(ended.length, JOBS + 12)
    assert.equal(new Set(ended.map(({ id }) => id)).size, ended.length)
    for (const { id, lease_id } of ended) {
      const byTheDead = taken.find(({ job, leaseId }) => job.id === id && leaseId === lease_id)
      assert.equal(lease_id, owners.get(id) ?? byTheDead?.leaseId)
    }
    const settled = await first.ledger.entries(tenant.accountId, { limit: 1000, before: null, kinds: ['settle'] })
    assert.equal(settled.length, ended.length)
    assert.deepEqual(await first.ledger.holds(tenant.accountId, 10), [])
  })

  async function listEnded(accountId: string): Promise<{ id: string; lease_id: string }[]> {
    const client = createClient({ url: cluster().url })
    await client.connect()
    try {
      const text = `SELECT id, lease_id FROM job_done WHERE account_id = $1 AND status = 'succeeded'`
      return (await client.query(text, [accountId])).rows
    } finally {
      await client.end()
    }
  }

  test('all move the money of the same accounts in every way: it adds up, and nobody is below the floor', async () => {
    const random = seededRandom(20_260_102)
    const tenants = await Promise.all(
      [0, -300].map((floor) => Tenant.metered(cluster().stores[0], { micros: 6000, floor })),
    )
    const jobIds: [accountId: string, jobId: string][] = []
    const claims: Claim[] = []
    const now = START
    let granted = 12_000

    async function step(store: RemoteStore): Promise<void> {
      const tenant = random.pick(tenants)
      const choice = random.next()
      if (choice < 0.35) {
        const job = tenant.newJob({ ...ONE_LANE.job, price: PRICE })
        const { outcome } = await store.jobs.submit(job, null)
        if (outcome === 'queued') jobIds.push([tenant.accountId, job.id])
      } else if (choice < 0.6) {
        const claim = await claimFrom(store, tenant.pool, now)
        if (claim !== null) claims.push(claim)
      } else if (choice < 0.75 && claims.length > 0) {
        await finish(store, random.pick(claims), at(random.between(1, 30_000)))
      } else if (choice < 0.85 && jobIds.length > 0) {
        await store.jobs.cancel(...random.pick(jobIds), now)
      } else if (choice < 0.92 && jobIds.length > 0) {
        await store.ledger.refund({ holdId: `job:${random.pick(jobIds)[1]}`, micros: 10, at: now, memo: '' })
      } else {
        const micros = random.between(-400, 600)
        const grant = { id: randomUUID(), accountId: tenant.accountId, micros, at: now, memo: '' }
        if ((await store.ledger.grant(grant)).outcome === 'granted') granted += micros
      }
    }

    const loop = async (store: RemoteStore) => {
      for (let steps = 0; steps < 40; steps += 1) await step(store)
    }
    await Promise.all(cluster().stores.flatMap((store) => [loop(store), loop(store), loop(store)]))
    const { ledger } = cluster().stores[1]
    const usages = await Promise.all(
      tenants.map(({ accountId }) => ledger.usage(accountId, { from: START, to: at(1e9) })),
    )
    const balances = await Promise.all(tenants.map(({ accountId }) => ledger.balance(accountId)))
    const sum = (amounts: readonly number[]) => amounts.reduce((total, amount) => total + amount, 0)
    assert.equal(sum(usages.map((usage) => usage.granted)), granted)
    assert.equal(
      sum(balances.map((balance) => (balance?.available ?? 0) + (balance?.held ?? 0))),
      granted - sum(usages.map(({ charged }) => charged)),
    )
    for (const balance of balances) assert.ok(balance !== null && balance.available >= balance.floor)
    assert.deepEqual((await ledger.check()).faults, [])
  })
})
