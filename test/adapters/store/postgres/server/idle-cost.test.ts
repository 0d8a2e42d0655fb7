/** How often a process that has nothing to do asks the database: counted in transactions, not in time. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../../../../lib/clock.ts'
import { silentLog } from '../../../../../lib/log.ts'
import { openPostgresStore } from '../../../../../src/adapters/store/postgres/open-postgres-store.ts'
import { openServiceNode } from '../../../../../src/compose/process/service-node.ts'
import { createTestDatabase } from '../../../../support/postgres/test-database.ts'

async function openStore() {
  const stack = new AsyncDisposableStack()
  const database = stack.use(await createTestDatabase())
  const store = stack.use(await openPostgresStore({ url: database.url, migrates: false }))
  const transactions = () => store.stats().write.batches + store.stats().read.batches
  return {
    store,
    /** How many transactions something takes. */
    async count(run: () => Promise<unknown>): Promise<number> {
      const before = transactions()
      await run()
      return transactions() - before
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

test('a beat is one transaction, whatever names the process wants, and brings back the time', async () => {
  await using opened = await openStore()
  const { store, count } = opened
  const times: (Date | null)[] = []
  const open = () =>
    openServiceNode({
      ...{ store, version: '1', role: 'all', clock: systemClock, log: silentLog },
      workers: () => ({}),
      address: () => null,
      sampleTime: async (read) => void times.push(await read()),
    })
  await using leader = await open()
  await using other = await open()
  const [work, same] = [leader.contend('work'), other.contend('work')]
  assert.deepEqual([await count(leader.heartbeat.beat), await count(other.heartbeat.beat)], [1, 1])
  assert.deepEqual([leader.leadership.isHeld(), work.isHeld()], [true, true])
  assert.deepEqual([other.leadership.isHeld(), same.isHeld()], [false, false])
  const before = await store.readTime()
  await other.heartbeat.beat()
  const told = times.at(-1)?.getTime() ?? assert.fail('the server has a clock')
  assert.ok(before.getTime() <= told && told <= (await store.readTime()).getTime())
})

test('whether lists, engines and calls have changed is one transaction', async () => {
  await using opened = await openStore()
  const { store, count } = opened
  assert.equal(await count(() => store.glance()), 1)
})
