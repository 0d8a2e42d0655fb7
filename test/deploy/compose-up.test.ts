/**
 * The processes of the Compose file, started here with the commands and the environment that stand there, but for names of machines: a
 * migration first, then two that answer, and one that runs jobs, over one Postgres and one bucket.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { type SpawnedServer, spawnServer } from '../support/app/spawn-server.ts'
import { runAtelier } from '../support/cli/atelier.ts'
import { call } from '../support/clients/call.ts'
import { createBareDatabase } from '../support/postgres/test-database.ts'
import { startFakeS3 } from '../support/s3/fake-s3.ts'
import { waitUntil } from '../support/wait-until.ts'
import { readCompose } from './files.ts'

const TOKEN = 'the-token-of-the-clients'
const WORKFLOW = {
  1: { class_type: 'EmptyImage', inputs: { width: 32, height: 32, batch_size: 1, color: 255 } },
  2: { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'compose' } },
}

test('the processes of the Compose file come up as one service: a job of one, run by another, fetched from the third', async () => {
  await using stack = new AsyncDisposableStack()
  const database = stack.use(await createBareDatabase())
  const storage = stack.use(await startFakeS3())
  const home = mkdtempSync(path.join(tmpdir(), 'atelier-compose-'))
  stack.defer(() => rmSync(home, { recursive: true, force: true }))
  const given: Readonly<Record<string, string>> = {
    ATELIER_DATABASE: database.url,
    ATELIER_BLOBS: storage.blobsUrl,
    ATELIER_BLOBS_KEYS: storage.keys,
    ATELIER_SECRET_KEY: 'ab'.repeat(32),
    ATELIER_TOKEN: TOKEN,
    ATELIER_PUBLIC_URL: 'http://localhost:8080',
  }
  const { services } = readCompose()
  const settingsOf = (name: string) => {
    const { command = [], environment = {} } = services[name]
    const env = Object.entries(environment).map(([key, value]) => [key, given[key] ?? String(value)])
    return { command, env: { ...Object.fromEntries(env), ATELIER_DATA_DIR: path.join(home, name) } }
  }
  const start = async (name: string): Promise<SpawnedServer> => {
    const { command, env } = settingsOf(name)
    const [word, ...flags] = command
    return stack.use(await spawnServer(flags, env, { command: word === 'work' ? 'work' : 'serve' }))
  }

  const tooEarly = await start('api-a').catch((error: Error) => error.message)
  assert.match(String(tooEarly), /migrate/, 'a process that answers leaves the schema alone')
  const migrate = settingsOf('migrate')
  const migrated = await runAtelier(migrate.command, { cwd: home, env: migrate.env })
  assert.equal(migrated.code, 0, migrated.stderr)
  const [one, other] = [await start('api-a'), await start('api-b')]
  await start('worker')

  const headers = { authorization: `Bearer ${TOKEN}` }
  const body = JSON.stringify({ workflow: WORKFLOW })
  const asked = storage.asked.length
  const submitted = await call(one.url, '/api/v2/jobs', { method: 'POST', body, headers })
  assert.equal(submitted.status, 201, submitted.text)
  const done = await waitUntil(async () => {
    const { json } = await call(other.url, `/api/v2/jobs/${submitted.json.id}`, { headers })
    assert.ok(['queued', 'running', 'succeeded'].includes(json.status), JSON.stringify(json))
    return json.status === 'succeeded' ? json : null
  })
  const { pathname, search } = new URL(done.outputs[0].url, other.url)
  const picture = await call(other.url, `${pathname}${search}`, { headers })
  // Clients of this file cannot reach the storage, so nobody is sent there.
  assert.equal(picture.status, 200)
  assert.equal(picture.bytes.subarray(1, 4).toString(), 'PNG')
  // What bench/model counts for an output of usual size.
  assert.deepEqual(storage.asked.slice(asked), ['put', 'get'])
})
