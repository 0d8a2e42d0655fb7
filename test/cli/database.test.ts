/** The commands of an operator over a Postgres database. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, test } from 'node:test'
import { createClient } from '../../lib/postgres/driver.ts'
import { createSealer } from '../../lib/sealer.ts'
import { runInProcess } from '../support/cli/in-process.ts'
import { createBareDatabase, createTestDatabase } from '../support/postgres/test-database.ts'

const cwd = mkdtempSync(path.join(tmpdir(), 'atelier-cli-database-'))
after(() => rmSync(cwd, { recursive: true, force: true }))

const run = (args: readonly string[], url: string, env = {}) =>
  runInProcess(args, { cwd, env: { ATELIER_DATABASE: url, ...env } })

describe('atelier migrate', () => {
  test('says what is pending, does it, and finds nothing more to do', async () => {
    await using bare = await createBareDatabase()
    const dry = await run(['migrate', '--dry-run'], bare.url)
    assert.match(
      dry.stdout,
      /^database postgres:\/\/127\.0\.0\.1:\d+\/t_\w+ changes:\n {2}pending {2}0001-first-tables\n/,
    )
    const done = await run(['migrate'], bare.url)
    assert.match(done.stdout, /\n {2}applied {2}0001-first-tables\n/)
    assert.match((await run(['migrate', '--contract'], bare.url)).stdout, /is up to date \(\d+ applied\)\n$/)
    assert.deepEqual([dry.code, done.code], [0, 0])
  })

  test('says in one line why it cannot', async () => {
    const result = await run(['migrate'], 'postgres://atelier@127.0.0.1:1/nothing')
    assert.equal(result.code, 1)
    assert.match(result.stderr, /^atelier: cannot migrate: The database at .* cannot be used: .*\n$/)
  })
})

describe('atelier doctor', () => {
  const key = { ATELIER_SECRET_KEY: 'ab'.repeat(32) }

  test('tells version, schema, durability, connections, clock and upkeep', async () => {
    await using database = await createTestDatabase()
    const { stdout, code } = await run(['doctor', '--port', '0'], database.url, key)
    assert.match(stdout, /ok {4}database +postgres:\/\/127\.0\.0\.1:\d+\/t_\w+, Postgres \d+.*, sslmode verify-full\n/)
    assert.match(stdout, /ok {4}schema +\d+ migrations applied\n/)
    // The server of the tests gives up durability for speed.
    assert.match(stdout, /(fail {2}durability +fsync is off.*\n +-> set fsync = on|ok {4}durability +fsync)/)
    assert.match(stdout, /ok {4}connections +\d+ of \d+ in use; each process takes up to 8\n/)
    assert.match(stdout, /ok {4}clock +the server is \d+ ms/)
    assert.match(stdout, /ok {4}upkeep +no bloat/)
    assert.match(stdout, /ok {4}bus +no process runs now/)
    assert.doesNotMatch(stdout, /notices/, 'a notice came back')
    assert.equal(code, /fail {2}/.test(stdout) ? 1 : 0)
  })

  test('says whether the secret key opens what the database holds sealed', async () => {
    await using database = await createTestDatabase()
    const look = async (keys: string) =>
      (await run(['doctor', '--port', '0'], database.url, { ATELIER_SECRET_KEY: keys })).stdout
    const [own, other] = ['ab'.repeat(32), 'cd'.repeat(32)]
    assert.match(await look(own), /ok {4}secret key +nothing is sealed under it yet\n/)
    const jobId = randomUUID()
    const sealed = createSealer(Buffer.from(own, 'hex')).seal(Buffer.from('{}'), jobId)
    const client = createClient({ url: database.url })
    await client.connect()
    await client.query('INSERT INTO job_secret (job_id, sealed) VALUES ($1, $2)', [jobId, sealed])
    await client.end()
    assert.match(await look(own), /ok {4}secret key +it opens what the database holds sealed\n/)
    assert.match(await look(`${other},${own}`), /ok {4}secret key +it opens/)
    assert.match(await look(other), /fail {2}secret key +it does not open .*\n +-> set ATELIER_SECRET_KEY to/)
  })

  test('warns of pending migrations, and fails on a server that does not answer', async () => {
    await using bare = await createBareDatabase()
    const pending = await run(['doctor', '--port', '0'], bare.url, key)
    assert.match(pending.stdout, /warn {2}schema +\d+ migrations pending\n +-> back the database up/)
    const gone = await run(['doctor', '--port', '0'], 'postgres://atelier@127.0.0.1:1/nothing', key)
    assert.match(gone.stdout, /fail {2}database +The database at .* cannot be used/)
    assert.equal(gone.code, 1)
  })
})

test('start, stop and status are for the one service of a data folder', async () => {
  for (const command of ['stop', 'status']) {
    const result = await run([command], 'postgres://atelier@127.0.0.1:1/nothing')
    assert.equal(result.code, 2)
    assert.match(result.stderr, /^atelier: with a database, run `atelier serve` under a process manager/)
  }
})

test('accounts, keys and credits are changed at the database, whether a service runs or not', async () => {
  await using database = await createTestDatabase()
  const made = await run(['accounts', 'create', 'team-a', '--tier', 'standard'], database.url)
  assert.equal(made.code, 0, made.stderr)
  const key = await run(['keys', 'create', '--account', 'team-a'], database.url)
  assert.match(key.stdout, /^key +atl_\w+$/m)
  const granted = await run(['credits', 'grant', '--account', 'team-a', '--usd', '2.5'], database.url)
  assert.equal(granted.stdout, 'granted: $2.50 available, $0.00 held\n')
  const check = await run(['credits', 'check'], database.url)
  assert.equal(check.stdout, 'everything adds up: 1 entries and 0 open holds of 1 accounts\n')
})

test('verify compares the files of the data folder with the records of the database', async () => {
  await using database = await createTestDatabase()
  const result = await run(['verify', '--data-dir', path.join(cwd, 'none')], database.url)
  assert.deepEqual([result.code, result.stdout], [0, '0 files, 0.0 MiB read: all is well\n'])
})
