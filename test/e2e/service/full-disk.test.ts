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
