/** Opening, closing, and the death of a thread. */
import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { openSqliteStore } from '../../../../src/adapters/store/sqlite/open-sqlite-store.ts'
import { openChannel } from '../../../../src/adapters/store/sqlite/threads/channel.ts'
import { ServiceError } from '../../../../src/domain/errors.ts'
import { newOutput, Tenant } from '../../../contracts/store-under-test.ts'
import { withDirectory, withSqlite } from './temporary-store.ts'

test('everything is there again after closing and opening', () =>
  withDirectory(async (directory) => {
    const first = await openSqliteStore({ directory })
    const tenant = await Tenant.create(first)
    const { job } = await tenant.run({ metadata: { a: 'b' } })
    await first.changeMeta('secret', () => 'once')
    await first.changeMeta('secret', () => 'twice')
    await first[Symbol.asyncDispose]()
    await using second = await openSqliteStore({ directory })
    assert.deepEqual(await second.jobs.find(tenant.accountId, job.id, job.createdAt), job)
    assert.equal(await second.readMeta('secret'), 'twice')
    assert.equal(await second.readMeta('unknown'), null)
    assert.equal(await second.checkIntegrity(), 'ok')
  }))

test('a number that an output bears is never given again, though it was answered before it was written', () =>
  withDirectory(async (directory) => {
    const first = await openSqliteStore({ directory })
    const tenant = await Tenant.create(first)
    const { lease } = await tenant.run()
    const reserve = (store: typeof first) => store.jobs.reserveOutputNumbers(tenant.accountId, '', 'a', 1)
    assert.deepEqual([await reserve(first), await reserve(first), await reserve(first)], [1, 2, 3])
    await first.jobs.commit(lease, { outputs: [newOutput({ name: 'a_00003_.png' })] })
    await first[Symbol.asyncDispose]()
    await using second = await openSqliteStore({ directory })
    assert.equal(await reserve(second), 4)
  }))

test('numbers of prompts go on rising after a restart', () =>
  withDirectory(async (directory) => {
    const numbers: number[] = []
    for (let round = 0; round < 2; round++) {
      await using store = await openSqliteStore({ directory })
      for (let count = 0; count < 3; count++) numbers.push(await store.records.nextPromptNumber('ada'))
    }
    assert.deepEqual(
      numbers,
      numbers.toSorted((a, b) => a - b),
    )
    assert.equal(new Set(numbers).size, numbers.length)
  }))

test('closing stores what was asked before, refuses what comes after, and twice is harmless', () =>
  withDirectory(async (directory) => {
    const store = await openSqliteStore({ directory })
    const tenant = await Tenant.create(store)
    const asked = Array.from({ length: 20 }, () => tenant.submit())
    const read = tenant.use()
    const closing = [store[Symbol.asyncDispose](), store[Symbol.asyncDispose]()]
    await assert.rejects(tenant.use(), (error) => error instanceof ServiceError && error.refusal === 'shutting_down')
    const jobs = await Promise.all(asked)
    await read
    await Promise.all(closing)
    await store[Symbol.asyncDispose]()
    await assert.rejects(tenant.submit(), (error) => error instanceof ServiceError && error.refusal === 'shutting_down')
    await using again = await openSqliteStore({ directory })
    for (const { id, accountId, createdAt } of jobs) assert.ok(await again.jobs.find(accountId, id, createdAt))
  }))

test('only the owner may read the directory and its files', () =>
  withSqlite({}, async (store, directory) => {
    await Tenant.create(store)
    const modes = (await readdir(directory)).map((name) => [name, statSync(join(directory, name)).mode & 0o777])
    assert.equal(statSync(directory).mode & 0o777, 0o700)
    assert.ok(modes.length >= 4)
    assert.deepEqual(new Set(modes.map(([, mode]) => mode)), new Set([0o600]))
  }))

test('a thread that dies fails everything that waits for it and says so', async () => {
  const channel = await openChannel<{ readonly work: (input: null) => number }>({
    name: 'writer',
    script: new URL('./crashing-thread.ts', import.meta.url),
    workerData: null,
    maxPending: 10,
  })
  const calls = await Promise.allSettled([channel.call('work', null), channel.call('work', null)])
  for (const call of calls) {
    assert.ok(call.status === 'rejected')
    assert.match(String(call.reason), /writer thread of the store stopped: the thread broke/)
  }
  assert.match((await channel.failed).message, /the thread broke/)
  await assert.rejects(channel.call('work', null), /stopped/)
  await channel.close()
})

test('counters that drifted are set right and counted', () =>
  withSqlite({}, async (store, directory) => {
    const tenant = await Tenant.create(store)
    await tenant.run()
    await tenant.submit()
    const intruder = new DatabaseSync(join(directory, 'atelier.db'), { timeout: 1000 })
    intruder.prepare('UPDATE account SET running = 9, succeeded = 4 WHERE id = ?').run(tenant.accountId)
    intruder.close()
    assert.equal(await store.accounts.repairCounters(), 2)
    assert.deepEqual(await tenant.use(), { running: 1, queued: 1 })
    assert.equal(await store.accounts.repairCounters(), 0)
  }))
