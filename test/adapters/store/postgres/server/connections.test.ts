/** Connections that break under a transaction: it runs again where that is safe, and nothing else is harmed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../../../../../lib/log.ts'
import { openConnections } from '../../../../../src/adapters/store/postgres/database/connections.ts'
import type { Queryable } from '../../../../../src/adapters/store/postgres/database/statement.ts'
import { openShared } from '../../../../../src/adapters/store/postgres/shared-stores.ts'
import { command, postgresOnly, query } from '../../../../../src/adapters/store/statements/statement.ts'
import { ledgerStore } from '../../../../../src/adapters/store/stores/ledger/ledger-store.ts'
import { integer, shape } from '../../../../../src/adapters/store/tables/table.ts'
import { isStoreAway } from '../../../../../src/domain/errors.ts'
import { openFaultProxy } from '../../../../support/network/fault-proxy.ts'
import { startReplicatedPostgres } from '../../../../support/postgres/replicated-postgres.ts'
import { createTestDatabase } from '../../../../support/postgres/test-database.ts'

const PID = query('test.pid', shape({ pid: integer() }), postgresOnly('SELECT pg_backend_pid() AS pid'))
// Returns once the other one is gone.
const END = command('test.end', postgresOnly('SELECT pg_terminate_backend(:pid::integer, 5000)'))
const READ = query('test.read', shape({ rows: integer() }), postgresOnly('SELECT count(*) AS rows FROM meta'))
const WRITE = command('test.write', postgresOnly(`INSERT INTO meta (key, value) VALUES ('a', 'b')`))
const WRITE_OTHER = command('test.write_other', postgresOnly(`INSERT INTO meta (key, value) VALUES ('c', 'd')`))

async function withConnections(
  body: (connections: ReturnType<typeof openConnections>) => Promise<void>,
): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const { url } = stack.use(await createTestDatabase())
  await body(stack.use(openConnections({ url, log: silentLog })))
}

const pidOf = async (db: Queryable) => (await db.get(PID))?.pid ?? 0

test('a transaction whose connection ends between two statements runs again and is written once', () =>
  withConnections(async ({ durable, chore, read }) => {
    let tries = 0
    await durable.transaction(async (tx) => {
      tries += 1
      await tx.run(WRITE)
      if (tries === 1) await chore.run(END, { pid: await pidOf(tx) })
      await tx.get(READ)
    })
    assert.equal(tries, 2)
    assert.deepEqual(await read.get(READ), { rows: 1 })
  }))

test('a connection that ends while nobody uses it is replaced', () =>
  withConnections(async ({ chore, read }) => {
    for (let count = 0; count < 3; count += 1) await chore.run(END, { pid: await pidOf(read) })
    assert.deepEqual(await read.get(READ), { rows: 0 })
  }))

test('writes that leave together with the commit are committed, or nothing is when one of them fails', () =>
  withConnections(async ({ durable, read }) => {
    const last = (tx: Queryable) => tx.run(WRITE)
    assert.equal(await durable.transaction(async () => 'result', { last }), 'result')
    await assert.rejects(
      durable.transaction(async (tx) => tx.run(WRITE_OTHER), { last }),
      /duplicate key/,
    )
    assert.deepEqual(await read.get(READ), { rows: 1 })
    // The connection is as good as before.
    await durable.transaction(async (tx) => tx.run(WRITE_OTHER))
    assert.deepEqual(await read.get(READ), { rows: 2 })
  }))

test('a transaction fails with what went wrong first, whichever statement was waited for', () =>
  withConnections(async ({ durable }) => {
    const wrong = command('test.wrong', postgresOnly('SELECT 1 / 0'))
    const both = durable.transaction(async (tx) => {
      const first = tx.run(wrong)
      await Promise.allSettled([first, tx.get(READ)]).then(() => tx.get(READ))
    })
    await assert.rejects(both, /division by zero/)
  }))

test('a connection on which no answer comes is given up, and the next one serves', async () => {
  await using stack = new AsyncDisposableStack()
  const database = new URL(stack.use(await createTestDatabase()).url)
  const proxy = stack.use(await openFaultProxy({ target: Number(database.port) }))
  database.port = String(proxy.port)
  const connections = stack.use(openConnections({ url: database.href, answerMs: 5_000, log: silentLog }))
  const { read, durable } = connections
  await Promise.all([read.get(READ), durable.transaction((tx) => tx.run(WRITE))])
  proxy.forget()
  await assert.rejects(read.get(READ), isStoreAway)
  assert.deepEqual(await read.get(READ), { rows: 1 })
  // It is not known to have been committed, so it is written only by whoever may write twice.
  await durable.transaction((tx) => tx.run(WRITE_OTHER))
  assert.deepEqual(await read.get(READ), { rows: 2 })
})

test('a commit that the standby does not have yet is not acknowledged, however long that takes', async () => {
  await using pair = await startReplicatedPostgres()
  await using connections = openConnections({ url: pair.primary.url, answerMs: 12_000, log: silentLog })
  const { durable, read } = connections
  await durable.run(command('test.table', postgresOnly('CREATE TABLE meta (key text PRIMARY KEY, value text)')))
  pair.replication.set({ kind: 'silent' })
  await assert.rejects(
    durable.transaction((tx) => tx.run(WRITE)),
    isStoreAway,
  )
  assert.deepEqual(await read.get(READ), { rows: 0 })
})

test("an account's charges are read where other pages are, and do not wait for sweeps", () =>
  withConnections(async (connections) => {
    const { charges } = openShared(ledgerStore, connections)
    const edges = [new Date(0), new Date(1)]
    await charges({ accountId: 'somebody', edges, by: 'day', limit: 1 })
    assert.equal(connections.stats().read.operations, 1)
  }))
