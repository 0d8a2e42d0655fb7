/**
 * Submits of several processes to the same accounts: a key makes one job, a chosen id is used once, no bound is passed by one, and
 * what was acknowledged is there, once, whatever happens to the connections.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Client } from 'pg'
import { silentLog } from '../../../../../lib/log.ts'
import { createClient } from '../../../../../lib/postgres/driver.ts'
import { type Connected, openConnections } from '../../../../../src/adapters/store/postgres/database/connections.ts'
import { openPartitions } from '../../../../../src/adapters/store/postgres/database/partitions.ts'
import { openPostgresStore } from '../../../../../src/adapters/store/postgres/open-postgres-store.ts'
import { createSubmitSteps } from '../../../../../src/adapters/store/postgres/operations/jobs/submits.ts'
import { createSubmits } from '../../../../../src/adapters/store/stores/jobs/submits.ts'
import type { SubmitOutcome } from '../../../../../src/domain/jobs/job-store.ts'
import type { Store } from '../../../../../src/domain/store.ts'
import { keyClaim, newJobId, START, Tenant } from '../../../../contracts/store-under-test.ts'
import { createTestDatabase } from '../../../../support/postgres/test-database.ts'

interface Nodes {
  readonly nodes: readonly Store[]
  readonly url: string
  /** Outside of every store. */
  readonly sql: Client
}

async function withNodes(count: number, body: (nodes: Nodes) => Promise<void>): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const { url } = stack.use(await createTestDatabase())
  const nodes: Store[] = []
  for (let index = 0; index < count; index += 1) {
    nodes.push(stack.use(await openPostgresStore({ url, migrates: false })))
  }
  const sql = createClient({ url })
  await sql.connect()
  stack.defer(() => sql.end())
  await body({ nodes, url, sql })
  assert.equal(await nodes[0].accounts.repairCounters(), 0)
}

async function numberOf(sql: Client, text: string): Promise<number> {
  const { rows } = await sql.query<{ n: string }>(text)
  return Number(rows[0].n)
}

const outcomesOf = (answers: readonly SubmitOutcome[]) => {
  const counts: Record<string, number> = {}
  for (const { outcome } of answers) counts[outcome] = (counts[outcome] ?? 0) + 1
  return counts
}

describe('submits of several processes', () => {
  test('with the same key make one job, and the others learn which', () =>
    withNodes(3, async ({ nodes }) => {
      const tenant = await Tenant.create(nodes[0])
      const answers = await Promise.all(
        Array.from({ length: 240 }, async (_, index) => {
          const key = `key ${index % 20}`
          return { key, answer: await nodes[index % 3].jobs.submit(tenant.newJob(), keyClaim(key)) }
        }),
      )
      assert.deepEqual(outcomesOf(answers.map(({ answer }) => answer)), { queued: 20, key_reused: 220 })
      const jobOf = new Map<string, string>()
      for (const { key, answer } of answers) if (answer.outcome === 'queued') jobOf.set(key, answer.job.id)
      for (const { key, answer } of answers) {
        if (answer.outcome === 'key_reused') assert.equal(answer.holder.jobId, jobOf.get(key))
      }
    }))

  test('with the same chosen id make one job, of whichever account', () =>
    withNodes(2, async ({ nodes, sql }) => {
      const tenants = [await Tenant.create(nodes[0]), await Tenant.create(nodes[0])]
      const ids = Array.from({ length: 30 }, () => newJobId())
      const answers = await Promise.all(
        ids.flatMap((id) =>
          tenants.map((tenant, index) => nodes[index].jobs.submit(tenant.newJob({ id, hasChosenId: true }), null)),
        ),
      )
      assert.deepEqual(outcomesOf(answers), { queued: 30, id_taken: 30 })
      assert.equal(await numberOf(sql, 'SELECT count(*) AS n FROM job_id_chosen'), 30)
    }))

  test('a chosen id stays taken after its job has ended, and is free when the submit was refused', () =>
    withNodes(1, async ({ nodes: [store] }) => {
      const tenant = await Tenant.create(store, { maxQueued: 1 })
      const [first, second] = [newJobId(), newJobId()]
      await tenant.submit({ id: first, hasChosenId: true })
      const refused = await store.jobs.submit(tenant.newJob({ id: second, hasChosenId: true }), null)
      assert.equal(refused.outcome, 'queue_full')
      await store.jobs.cancel(tenant.accountId, first, START)
      const again = await store.jobs.submit(tenant.newJob({ id: first, hasChosenId: true }), null)
      assert.equal(again.outcome, 'id_taken')
      await tenant.submit({ id: second, hasChosenId: true })
    }))

  test('fill a queue to its bound and never by one more, while jobs leave it', () =>
    withNodes(3, async ({ nodes, sql }) => {
      const tenant = await Tenant.create(nodes[0], { maxQueued: 40, maxRunning: 1000 })
      let isOver = false
      let most = 0
      const watching = (async () => {
        while (!isOver)
          most = Math.max(most, await numberOf(sql, `SELECT count(*) AS n FROM job WHERE status = 'queued'`))
      })()
      const answers = await Promise.all(
        Array.from({ length: 600 }, async (_, index) => {
          const store = nodes[index % 3]
          const answer = await store.jobs.submit(tenant.newJob(), null)
          if (answer.outcome !== 'queued') return answer
          if (index % 3 === 0) await store.jobs.cancel(tenant.accountId, answer.job.id, START)
          else if (index % 7 === 0) await tenant.claim()
          return answer
        }),
      )
      isOver = true
      await watching
      assert.ok(most <= 40, `${most} jobs waited`)
      assert.ok((outcomesOf(answers)['queued'] ?? 0) >= 40)
      assert.ok((outcomesOf(answers)['queue_full'] ?? 0) > 0)
    }))

  test('never hold more credit than there is', () =>
    withNodes(3, async ({ nodes, sql }) => {
      const tenant = await Tenant.create(nodes[0])
      await sql.query('INSERT INTO credit_account (account_id, available) VALUES ($1, 1050)', [tenant.accountId])
      const price = { perSecondMicros: 1, minimumMicros: 1, holdMicros: 100 }
      const answers = await Promise.all(
        Array.from({ length: 60 }, (_, index) => nodes[index % 3].jobs.submit(tenant.newJob({ price }), null)),
      )
      assert.deepEqual(outcomesOf(answers), { queued: 10, insufficient_credits: 50 })
      const { rows } = await sql.query('SELECT available, held FROM credit_account')
      assert.deepEqual(rows, [{ available: '50', held: '1000' }])
    }))

  test('that cannot be stored fail alone, not with the batch that they travelled in', () =>
    withNodes(1, async ({ nodes: [store] }) => {
      const [one, two] = [await Tenant.create(store), await Tenant.create(store)]
      const answers = await Promise.allSettled([
        store.jobs.submit(one.newJob(), null),
        store.jobs.submit(one.newJob({ id: 'not a uuid' }), null),
        store.jobs.submit(two.newJob({ accountId: 'nobody' }), null),
        store.jobs.submit(two.newJob(), keyClaim('k')),
        store.jobs.submit(one.newJob({ priority: 2 ** 40 }), null),
        store.jobs.submit(one.newJob(), null),
      ])
      assert.deepEqual(
        answers.map(({ status }) => status === 'fulfilled'),
        [true, false, false, true, false, true],
      )
      assert.deepEqual(await one.use(), { running: 0, queued: 2 })
      assert.deepEqual(await two.use(), { running: 0, queued: 1 })
    }))
})

describe('a submit whose connection breaks', () => {
  test('at the commit is sent again, and finds the job that it made', () =>
    withNodes(1, async ({ nodes: [store], url, sql }) => {
      const tenant = await Tenant.create(store)
      await sql.query('INSERT INTO credit_account (account_id, available) VALUES ($1, 1000)', [tenant.accountId])
      await using connections = openConnections({ url, log: silentLog })
      const price = { perSecondMicros: 1, minimumMicros: 1, holdMicros: 100 }
      const submits = [
        { job: tenant.newJob({ price }), claim: keyClaim('a') },
        { job: tenant.newJob({ hasChosenId: true }), claim: null },
      ]
      const partitions = openPartitions(connections.chore)
      await partitions.ensure(submits[0].job.expiresAt.getTime())
      const { durable } = connections
      // Committed, but the answer never came: the same transaction runs a second time.
      const forgetful: Connected = {
        ...durable,
        async transaction(body, options) {
          await durable.transaction(body, options)
          return durable.transaction(body, options)
        },
      }
      const { submit } = createSubmits(createSubmitSteps({ durable: forgetful, partitions }))
      const answers = await Promise.all(submits.map(({ job, claim }) => submit(job, claim)))
      assert.deepEqual(
        answers.map(({ outcome }) => outcome),
        ['queued', 'queued'],
      )
      assert.deepEqual(await tenant.use(), { running: 0, queued: 2 })
      const { rows } = await sql.query('SELECT available, held FROM credit_account')
      assert.deepEqual(rows, [{ available: '900', held: '100' }])
    }))

  test('is either there once or was never acknowledged, however often connections are ended', () =>
    withNodes(2, async ({ nodes, sql }) => {
      const tenants = [
        await Tenant.create(nodes[0], { maxQueued: 10_000 }),
        await Tenant.create(nodes[0], { maxQueued: 10_000 }),
      ]
      let ended = 0
      async function endConnection(): Promise<void> {
        ended += await numberOf(
          sql,
          `SELECT count(pg_terminate_backend(pid)) AS n FROM (SELECT pid FROM pg_stat_activity
           WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle' ORDER BY random() LIMIT 1) AS one`,
        )
      }
      const acknowledged: string[] = []
      const unknown = new Set<string>()
      await Promise.all(
        Array.from({ length: 16 }, async (_, worker) => {
          for (let count = 0; count < 20; count += 1) {
            const tenant = tenants[count % 2]
            const key = keyClaim(`${worker}/${count}`)
            const job = tenant.newJob()
            try {
              const { outcome } = await nodes[worker % 2].jobs.submit(job, key)
              assert.equal(outcome, 'queued')
              acknowledged.push(job.id)
            } catch (error) {
              assert.ok(!(error instanceof assert.AssertionError))
              unknown.add(job.id)
            }
            if (count % 4 === 0) await endConnection()
          }
        }),
      )
      assert.ok(ended > 0)
      const { rows } = await sql.query<{ id: string }>('SELECT id FROM job')
      const stored = new Set(rows.map(({ id }) => id))
      assert.equal(stored.size, rows.length)
      assert.deepEqual(
        acknowledged.filter((id) => !stored.has(id)),
        [],
      )
      assert.deepEqual(
        [...stored].filter((id) => !acknowledged.includes(id) && !unknown.has(id)),
        [],
      )
      const keys = await numberOf(
        sql,
        'SELECT count(DISTINCT job_id) AS n FROM idempotency_key JOIN job ON id = job_id',
      )
      assert.equal(keys, stored.size)
      assert.equal(await numberOf(sql, 'SELECT count(*) AS n FROM job_text'), stored.size)
    }))
})
