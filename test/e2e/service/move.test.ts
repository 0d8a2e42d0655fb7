/** A data folder is brought over to Postgres and back: every record and every byte, also when the move is killed on its way. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openPostgresStore } from '../../../src/adapters/store/postgres/open-postgres-store.ts'
import { openPostgresRecords } from '../../../src/adapters/store/postgres/transfer/postgres-records.ts'
import { openSqliteStore } from '../../../src/adapters/store/sqlite/open-sqlite-store.ts'
import { openSqliteRecords } from '../../../src/adapters/store/sqlite/transfer/sqlite-records.ts'
import { moveRecords, type RecordTarget } from '../../../src/domain/transfer/move-records.ts'
import { startTestApp } from '../../support/app/start-app.ts'
import { runInProcess } from '../../support/cli/in-process.ts'
import { CheckedClient, node } from '../../support/clients/checked-client.ts'
import { LegacyClient } from '../../support/clients/legacy-client.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'
import { TEST_PASSWORD, withoutPassword } from '../../support/postgres/postgres-server.ts'
import { createTestDatabase } from '../../support/postgres/test-database.ts'

const SECRET_KEY = 'ab'.repeat(32)
const NOW = new Date('2030-01-01T00:00:00Z')

/** A folder with some of everything that the kind `local` keeps, as a killed process would leave it. */
async function withFolder(body: (directory: string) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'atelier-move-'))
  try {
    await fill(join(root, 'data'))
    await body(root)
  } finally {
    await rm(root, { recursive: true, force: true })
  }
}

async function fill(dataDir: string): Promise<void> {
  const engine = createFakeEngine()
  const app = await startTestApp({
    dataDir,
    settings: { secretKey: SECRET_KEY, workers: '1' },
    overrides: { engine },
  })
  const client = new CheckedClient(app.url)
  const legacy = new LegacyClient(app.url)
  await client.uploaded('kept.png', 'uploaded bytes')
  for (let index = 0; index < 5; index++) {
    const graph = {
      '1': node('FakeLog', { text: 'zero \u0000 byte', times: 2 }),
      '2': node('FakeSave', { text: `t${index}` }),
    }
    const job = await client.accepted(
      graph,
      { metadata: { round: String(index) } },
      { 'idempotency-key': `key-${index}` },
    )
    await client.untilStatus(job.id, 'succeeded')
  }
  const failed = await client.accepted({ '1': node('FakeFail') })
  await client.untilStatus(failed.id, 'failed')
  await legacy.post('/api/userdata/graph.json', '{"a":1}')
  await client.accepted({ '1': node('FakeGate') }, { extra_data: { api_key_comfy_org: 'sealed' } })
  await engine.untilRuns(7)
  await client.accepted({ '1': node('FakeSave') }, { metadata: { waits: 'yes' }, priority: 3 })
  await app.app[Symbol.asyncDispose]()
}

/** A process dies while it holds a job. */
async function hold(directory: string): Promise<void> {
  await using store = await openSqliteStore({ directory })
  const now = new Date()
  const leaseUntil = new Date(now.getTime() + 30_000)
  const engines = [{ engineId: 'engine', lanes: null }]
  const claim = { pool: 'default', workerId: 'dead', leaseId: 'lease', leaseUntil, now, engines, maxOvertakes: 0 }
  assert.notEqual(await store.jobs.claim(claim), null)
}

test('everything arrives, also when the move is killed again and again, and comes back the same', () =>
  withFolder(async (root) => {
    await using database = await createTestDatabase()
    const options = { url: database.url }
    const directory = join(root, 'data')
    await hold(directory)
    let writes = 0
    async function attempt(killAt: number) {
      using source = openSqliteRecords(directory, NOW)
      await using target = await openPostgresRecords(options, NOW)
      const mortal: RecordTarget = {
        ...target,
        async write(...args) {
          writes += 1
          if (writes === killAt) throw new Error('killed')
          return target.write(...args)
        },
      }
      return await moveRecords(source, mortal, { now: NOW, movedTo: 'elsewhere' })
    }
    await assert.rejects(attempt(3), /killed/)
    await assert.rejects(attempt(9), /killed/)
    const there = await attempt(Number.POSITIVE_INFINITY)
    const rowsOf = (name: string) => there.find((kind) => kind.name === name)?.rows
    assert.deepEqual([rowsOf('job'), rowsOf('idempotency_key'), rowsOf('user_file')], [8, 5, 1])
    assert.ok((rowsOf('job_label') ?? 0) >= 6)
    {
      await using store = await openPostgresStore(options)
      const { queued, running, succeeded, failed } = await store.jobs.countByStatus()
      assert.deepEqual([queued, running, succeeded, failed], [2, 0, 5, 1], 'the held job waits again')
    }
    await assert.rejects(openSqliteRecordsAsTarget(directory), /holds records already/)

    using back = openSqliteRecords(join(root, 'back'), NOW)
    await using from = await openPostgresRecords(options, NOW)
    const again = await moveRecords(from, back, { now: NOW, movedTo: 'back' })
    assert.deepEqual(again, there, 'row for row')

    async function openSqliteRecordsAsTarget(used: string): Promise<void> {
      await using source = await openPostgresRecords(options, NOW)
      using target = openSqliteRecords(used, NOW)
      await moveRecords(source, target, { now: NOW, movedTo: 'nowhere' })
    }
  }))

test('the command moves folder and bytes, leaves a mark behind, and the jobs go on over there', () =>
  withFolder(async (root) => {
    await using database = await createTestDatabase()
    const directory = join(root, 'data')
    // The variable names the same database, so its password is used.
    const env = { ATELIER_SECRET_KEY: SECRET_KEY, ATELIER_DATABASE: database.url }
    const bare = withoutPassword(database.url)
    const run = (...args: string[]) => runInProcess(['move', ...args], { cwd: root, env })
    const there = await run('--from', 'data', '--to', bare, '--data-dir', join(root, 'bytes'))
    assert.equal(there.code, 0, there.stderr)
    assert.match(there.stdout, /job +8 rows, the same on both sides/)
    assert.match(there.stdout, /bytes +\d+ files, .*each read and compared\nmoved to postgres:\/\//)
    await assert.rejects(startTestApp({ dataDir: directory }), /Its records were moved to postgres:\/\//)
    const wrong = await run('--from', bare, '--to', 'back')
    assert.deepEqual([wrong.code, /give --data-dir/.test(wrong.stderr)], [2, true])
    const back = await run('--from', bare, '--to', 'back', '--data-dir', join(root, 'bytes'))
    assert.equal(back.code, 0, back.stderr)
    const engine = createFakeEngine()
    await using app = await startTestApp({
      dataDir: join(root, 'back'),
      settings: { secretKey: SECRET_KEY, workers: '1' },
      overrides: { engine },
    })
    const client = new CheckedClient(app.url)
    const { json } = await client.call('/api/v2/jobs?limit=50')
    assert.equal(json.jobs.length, 8)
    engine.openGate()
    for (const { id } of json.jobs) {
      const job = await client.until(id, ({ status }) => ['succeeded', 'failed', 'canceled'].includes(status))
      for (const output of job.outputs) {
        const content = await client.call(`/api/v2/assets/${output.id}/content`)
        assert.equal(content.status, 200)
      }
    }
  }))

test('bytes that stay in their folder are all in files of it afterwards, because the records have gone', () =>
  withFolder(async (root) => {
    await using database = await createTestDatabase()
    const directory = join(root, 'data')
    const env = { ATELIER_SECRET_KEY: SECRET_KEY, PGPASSWORD: TEST_PASSWORD }
    const flags = ['--from', 'data', '--to', withoutPassword(database.url), '--data-dir', directory]
    const there = await runInProcess(['move', ...flags], { cwd: root, env })
    assert.equal(there.code, 0, there.stderr)
    const settings = { secretKey: SECRET_KEY, workers: '1' }
    await using app = await startTestApp({
      dataDir: directory,
      settings: { ...settings, database: database.url },
      overrides: { engine: createFakeEngine() },
    })
    const client = new CheckedClient(app.url)
    const { json } = await client.call('/api/v2/jobs?status=succeeded&limit=50')
    assert.equal(json.jobs.length, 5)
    for (const { outputs } of json.jobs) {
      for (const { id } of outputs) assert.equal((await client.call(`/api/v2/assets/${id}/content`)).status, 200)
    }
  }))

test('a store that a service uses is not moved', () =>
  withFolder(async (root) => {
    await using _held = await openSqliteStore({ directory: join(root, 'data') })
    assert.throws(() => openSqliteRecords(join(root, 'data'), NOW), /is in use by process/)
  }))
