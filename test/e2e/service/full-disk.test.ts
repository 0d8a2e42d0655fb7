/** A full disk: callers get a general refusal, the operator sees the reason, and the service recovers by itself. */
import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { diskFileOps, type FileOps } from '../../../src/adapters/blobs/fs/file-ops.ts'
import { startTestApp } from '../../support/app/start-app.ts'
import { type Answer, call } from '../../support/clients/call.ts'
import { CheckedClient } from '../../support/clients/checked-client.ts'
import { LegacyClient } from '../../support/clients/legacy-client.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'
import { waitUntil } from '../../support/wait-until.ts'

interface Disk extends FileOps {
  isFull: boolean
}

function createDisk(code: string): Disk {
  const disk: Disk = {
    ...diskFileOps,
    isFull: false,
    write: (...args) => (disk.isFull ? Promise.reject(noRoom(code)) : diskFileOps.write(...args)),
  }
  return disk
}

function noRoom(code: string): Error {
  return Object.assign(new Error(`${code}: no space left on device, write`), { code, syscall: 'write' })
}

const upload = (url: string, text: string): Promise<Answer> => new CheckedClient(url).upload('note.txt', text)

/** An answer about readiness is good for about a second. */
async function untilReady(url: string, status: number): Promise<Answer> {
  return waitUntil(async () => {
    const answer = await call(url, '/readyz')
    return answer.status === status ? answer : null
  })
}

const ABOUT_DISKS = /disk|space|full|storage|ENOSPC|EDQUOT|room|folder|director/i

for (const code of ['ENOSPC', 'EDQUOT']) {
  test(`${code}: refused in general words, not ready, and ready again when there is room`, async () => {
    const disk = createDisk(code)
    await using app = await startTestApp({ overrides: { engine: createFakeEngine(), files: disk } })
    const { url, dataDir } = app
    assert.equal((await upload(url, 'before')).status, 201)
    await untilReady(url, 200)
    disk.isFull = true
    const refused = await upload(url, 'meanwhile')
    assert.deepEqual(
      [refused.status, refused.json.error.code, refused.json.error.details],
      [500, 'upstream_error', null],
    )
    assert.doesNotMatch(refused.json.error.message, ABOUT_DISKS)
    const legacy = await new LegacyClient(url).upload('a.png', Buffer.from('meanwhile'))
    assert.deepEqual([legacy.status, legacy.json.code], [500, 'internal_error'])
    assert.doesNotMatch(legacy.text, ABOUT_DISKS)
    const notReady = await untilReady(url, 503)
    assert.deepEqual(notReady.json, { status: 'not_ready', reason: 'storage', role: 'all' })
    assert.equal((await call(url, '/healthz')).status, 200)
    disk.isFull = false
    await untilReady(url, 200)
    assert.equal((await upload(url, 'meanwhile')).status, 201)
    assert.deepEqual(await readdir(join(dataDir, 'blobs', 'tmp')), [])
    assert.ok(!(await readdir(dataDir)).includes('room-probe'))
  })
}

test('a job that finds the disk full waits for room without spending an attempt, and the engine says why it gets no work', async () => {
  const disk = createDisk('ENOSPC')
  const engine = createFakeEngine()
  await using app = await startTestApp({ overrides: { engine, files: disk } })
  const { fleet } = app.app
  disk.isFull = true
  const workflow = { '1': { class_type: 'FakeSave', inputs: { text: 'x'.repeat(100_000), count: 1 } } }
  const { json } = await call(app.url, '/api/v2/jobs', { method: 'POST', body: JSON.stringify({ workflow }) })
  const held = await waitUntil(() => fleet.status().find(({ state }) => state === 'quarantined') ?? null)
  assert.match(held.reason ?? '', /storage of the service is full/)
  const runs = engine.runs.length
  const find = async () => (await call(app.url, `/api/v2/jobs/${json.id}`)).json
  assert.equal((await waitUntil(async () => ((await find()).status === 'queued' ? find() : null))).status, 'queued')
  disk.isFull = false
  const done = await waitUntil(async () => ((await find()).status === 'succeeded' ? find() : null))
  assert.equal(engine.runs.length, runs + 1, 'it ran no further time while the disk was full')
  assert.equal(done.outputs.length, 1)
  assert.ok(engine.runs.every(({ attempt }) => attempt === 1))
  assert.equal(fleet.status()[0].state, 'ready')
})
