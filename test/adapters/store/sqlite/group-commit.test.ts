/** Writes that arrive together share a transaction, fail alone, and are bounded while they wait. */
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { createWriteBatch } from '../../../../src/adapters/store/sqlite/threads/run-batch.ts'
import { ServiceError } from '../../../../src/domain/errors.ts'
import { keyClaim, START, Tenant } from '../../../contracts/store-under-test.ts'
import { withSqlite } from './temporary-store.ts'

test('writes that arrive while a commit is under way share the next one', () =>
  withSqlite({}, async (store) => {
    const tenant = await Tenant.create(store)
    const before = store.stats().write
    await Promise.all(Array.from({ length: 300 }, () => tenant.submit()))
    const { batches, operations, largestBatch, pending } = store.stats().write
    assert.equal(operations - before.operations, 300)
    assert.ok(batches - before.batches <= 3, `${batches - before.batches} commits for 300 writes`)
    assert.ok(largestBatch >= 100)
    assert.equal(pending, 0)
  }))

test('a write that fails does so alone: its neighbours in the batch are stored', () =>
  withSqlite({}, async (store) => {
    const tenant = await Tenant.create(store)
    const taken = await tenant.submit()
    const fields = [{}, { id: taken.id }, { accountId: 'nobody' }, {}]
    const before = store.stats().write.batches
    const settled = await Promise.allSettled(
      fields.map((each) => store.jobs.submit(tenant.newJob(each), keyClaim('k'))),
    )
    assert.equal(store.stats().write.batches - before, 1)
    assert.deepEqual(
      settled.map((result) => (result.status === 'fulfilled' ? result.value.outcome : 'failed')),
      ['queued', 'key_reused', 'failed', 'key_reused'],
    )
    const unkeyed = await Promise.allSettled(fields.map((each) => store.jobs.submit(tenant.newJob(each), null)))
    assert.deepEqual(
      unkeyed.map(({ status }) => status),
      ['fulfilled', 'rejected', 'rejected', 'fulfilled'],
    )
    assert.deepEqual(await tenant.use(), { running: 0, queued: 4 })
    assert.equal(await store.accounts.repairCounters(), 0)
    assert.equal(store.stats().write.failedOperations, 3)
  }))

test('when the commit itself fails nothing of the batch is stored or acknowledged, and the next batch works', () => {
  const database = new DatabaseSync(':memory:')
  database.exec(`CREATE TABLE parent (id INTEGER PRIMARY KEY);
    CREATE TABLE child (id INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)`)
  const insert = database.prepare('INSERT INTO child VALUES (?)')
  const run = createWriteBatch(database, {
    // A child without parent passes the statement and fails the commit.
    add: (id: number | null) => Number(insert.run(id).changes),
  })
  const [, failures] = run([
    ['add', 'add'],
    [null, 7],
  ])
  assert.deepEqual([...(failures?.keys() ?? [])], [0, 1])
  assert.equal(database.isTransaction, false)
  assert.deepEqual(run([['add'], [null]]), [[1], null])
  assert.deepEqual({ ...database.prepare('SELECT count(*) AS count FROM child').get() }, { count: 1 })
  database.close()
})

test('a full disk refuses what does not fit with a clear error; the store lives on and works once there is room', () =>
  withSqlite({ maxPages: 400 }, async (store) => {
    const tenant = await Tenant.create(store)
    const workflow = JSON.stringify({ text: 'x'.repeat(50_000) })
    const jobs: string[] = []
    let refused: unknown = null
    while (refused === null) {
      await tenant.submit({ workflow }).then(
        ({ id }) => jobs.push(id),
        (error: unknown) => {
          refused = error
        },
      )
    }
    assert.ok(refused instanceof ServiceError && refused.refusal === 'storage_full')
    assert.match(refused.message, /disk .* is full/)
    assert.ok(jobs.length > 0)
    // Together with one that fits, only the large one is refused.
    const together = await Promise.allSettled([tenant.submit({ workflow }), tenant.submit({ workflow: '{}' })])
    assert.deepEqual(
      together.map(({ status }) => status),
      ['rejected', 'fulfilled'],
    )
    for (const id of jobs) await store.jobs.cancel(tenant.accountId, id, START)
    await store.jobs.remove({ now: new Date(START.getTime() + 1e10), expiredBefore: START, limit: 1000 })
    await tenant.submit({ workflow })
    assert.equal(await store.accounts.repairCounters(), 0)
    assert.equal(await store.checkIntegrity(), 'ok')
  }))

test('a full disk still takes cancels, deletes and ends, and nothing that could wait', () =>
  withSqlite({ maxPages: 400 }, async (store) => {
    const tenant = await Tenant.create(store)
    const waiting = await Promise.all(Array.from({ length: 40 }, () => tenant.submit()))
    const fill = async (bytes: number) => {
      while (true) {
        const fits = await tenant.submit({ workflow: JSON.stringify('x'.repeat(bytes)) }).then(
          () => true,
          () => false,
        )
        if (!fits) return
      }
    }
    for (const bytes of [50_000, 5_000, 500, 10]) await fill(bytes)
    const settled = await Promise.allSettled([
      ...waiting.map(({ id }) => store.jobs.cancel(tenant.accountId, id, START)),
      // More than the cancels free, and less than what is set aside for them.
      tenant.submit({ workflow: JSON.stringify('x'.repeat(1_000_000)) }),
    ])
    assert.deepEqual(
      settled.map(({ status }) => status),
      [...waiting.map(() => 'fulfilled'), 'rejected'],
    )
    assert.equal(await store.checkIntegrity(), 'ok')
  }))

test('what waits for the writer is bounded: beyond that a call is refused at once and the rest is stored', () =>
  withSqlite({ maxPending: 10 }, async (store) => {
    const tenant = await Tenant.create(store)
    const settled = await Promise.allSettled(Array.from({ length: 50 }, () => tenant.submit()))
    const refused = settled.filter((result) => result.status === 'rejected')
    assert.equal(refused.length, 40)
    for (const { reason } of refused) {
      assert.ok(reason instanceof ServiceError && reason.refusal === 'queue_full')
      assert.equal(reason.retryAfterSeconds, 1)
    }
    assert.deepEqual(await tenant.use(), { running: 0, queued: 10 })
    await tenant.submit()
  }))
