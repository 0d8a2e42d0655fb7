import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Client } from 'pg'
import { startReplicatedPostgres } from './replicated-postgres.ts'

async function ask(url: string, sql: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}

test('what was acknowledged is on the standby when it takes over, as often as that happens', async () => {
  await using pair = await startReplicatedPostgres()
  const first = pair.primary.url
  await ask(first, 'CREATE TABLE kept (n integer)')
  await ask(first, 'INSERT INTO kept VALUES (1)')
  await pair.failOver()
  assert.notEqual(pair.primary.url, first)
  await assert.rejects(ask(first, 'SELECT 1'))
  await ask(pair.primary.url, 'INSERT INTO kept VALUES (2)')
  await pair.addStandby()
  await ask(pair.primary.url, 'INSERT INTO kept VALUES (3)')
  await pair.failOver()
  assert.deepEqual(await ask(pair.primary.url, 'SELECT n FROM kept ORDER BY n'), [{ n: 1 }, { n: 2 }, { n: 3 }])
})

test('commits wait for a standby that cannot be reached', async () => {
  await using pair = await startReplicatedPostgres()
  await ask(pair.primary.url, 'CREATE TABLE kept (n integer)')
  pair.replication.set({ kind: 'silent' })
  let isDone = false
  const commit = ask(pair.primary.url, 'INSERT INTO kept VALUES (1)').then(() => {
    isDone = true
  })
  await ask(pair.primary.url, 'SELECT pg_sleep(0.2)')
  assert.equal(isDone, false)
  pair.replication.set({ kind: 'open' })
  await commit
})
