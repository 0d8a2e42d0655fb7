/** Two processes' worth of service on one Postgres and one folder of bytes: what one is told, the other knows. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { silentLog } from '../../../lib/log.ts'
import { type App, type AppOverrides, startApp } from '../../../src/app.ts'
import { loadConfig } from '../../../src/config/config.ts'
import { CheckedClient, node } from '../../support/clients/checked-client.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'
import { createTestDatabase } from '../../support/postgres/test-database.ts'

interface Grounds {
  readonly dataDir: string
  start(settings?: Readonly<Record<string, string>>, overrides?: AppOverrides): Promise<App>
}

async function onGrounds(body: (grounds: Grounds) => Promise<void>): Promise<void> {
  await using database = await createTestDatabase()
  const dataDir = await mkdtemp(join(tmpdir(), 'atelier-shared-database-'))
  try {
    await body({
      dataDir,
      start(settings = {}, overrides = {}) {
        const { config, secrets } = loadConfig({
          flags: { port: '0', dataDir, databasePool: '4', ...settings },
          env: { ATELIER_DATABASE: database.url, ATELIER_SECRET_KEY: 'ab'.repeat(32) },
          cwd: dataDir,
        })
        return startApp(config, secrets, { log: silentLog, version: 'test', overrides })
      },
    })
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
}

test('a job that one takes is run by the other, and both tell of it', () =>
  onGrounds(async ({ start }) => {
    const engine = createFakeEngine()
    await using accepting = await start({ workers: '0' }, { engine: createFakeEngine() })
    await using running = await start({ workers: '1' }, { engine })
    const client = new CheckedClient(accepting.url)
    const { id } = await client.accepted({ '1': node('FakeSave', { text: 'shared' }) })
    const job = await client.untilStatus(id, 'succeeded')
    assert.equal(engine.runs.length, 1)
    const other = await new CheckedClient(running.url).job(id)
    assert.deepEqual([other.status, other.outputs[0].hash], ['succeeded', job.outputs[0].hash])
    const content = await client.call(`/api/v2/assets/${job.outputs[0].id}/content`)
    assert.equal(content.text, 'shared0')
  }))

test('a start with another secret key or another folder is refused', () =>
  onGrounds(async ({ start }) => {
    const engine = createFakeEngine()
    await using _first = await start({ workers: '0' }, { engine })
    const own = await mkdtemp(join(tmpdir(), 'atelier-own-folder-'))
    try {
      await assert.rejects(start({ secretKey: 'cd'.repeat(32) }, { engine }), /Set ATELIER_SECRET_KEY to theirs/)
      await assert.rejects(start({ dataDir: own }, { engine }), /Give every process the folder that holds them/)
    } finally {
      await rm(own, { recursive: true, force: true })
    }
  }))
