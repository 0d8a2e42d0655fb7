import assert from 'node:assert/strict'
import { platform } from 'node:os'
import { test } from 'node:test'
import { createClient } from '../../../lib/postgres/driver.ts'
import { startReplicatedPostgres } from './replicated-postgres.ts'

async function ask(url: string, sql: string): Promise<unknown[]> {
  const client = createClient({ url })
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

test('a server that is frozen answers nothing, and goes on where it stopped', {
  skip: platform() === 'linux' ? false : 'processes of a server are found in /proc, which is of Linux',
}, async () => {
  await using pair = await startReplicatedPostgres()
  const client = createClient({ url: pair.primary.url })
  await client.connect()
  const thaw = pair.primary.freeze()
  const answer = client.query('SELECT 1 AS n')
  const raced = await Promise.race([answer, new Promise((resolve) => setTimeout(resolve, 100, 'nothing'))])
  assert.equal(raced, 'nothing')
  thaw()
  assert.deepEqual((await answer).rows, [{ n: 1 }])
  await client.end()
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
