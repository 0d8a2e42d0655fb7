/**
 * A disk without a byte left, for real: the data folder is a small file system of its own, mounted where only the service sees
 * it, so that it is gone with the service.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { spawnServer } from '../support/app/spawn-server.ts'
import { waitUntil } from '../support/wait-until.ts'

const MOUNT = 'mount -t tmpfs -o size=32m none "$0" && exec "$@"'
const canMount = spawnSync('unshare', ['-m', 'sh', '-c', MOUNT, tmpdir(), 'true']).status === 0
const WORKFLOW = {
  1: { class_type: 'PrimitiveString', inputs: { value: 'hello' } },
  2: { class_type: 'PreviewAny', inputs: { source: ['1', 0] } },
}

/** Writes until nothing more fits, down to the last byte. */
function fill(path: string): void {
  const descriptor = openSync(path, 'w')
  for (const size of [65_536, 512, 1]) {
    const piece = Buffer.alloc(size, 1)
    try {
      while (true) writeSync(descriptor, piece)
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC')
    }
  }
  closeSync(descriptor)
}

test('on a full disk cancels and deletes go on, submits are refused, and all is well once there is room', {
  skip: canMount ? false : 'needs the right to mount a file system (root on Linux)',
}, async () => {
  const directory = mkdtempSync(join(tmpdir(), 'atelier-full-'))
  try {
    const prefix = ['unshare', '-m', 'sh', '-c', MOUNT, directory]
    await using server = await spawnServer(['--data-dir', directory, '--workers', '0'], {}, { prefix })
    const call = (method: string, path: string, body?: object | FormData) =>
      fetch(`${server.url}/api/v2${path}`, {
        method,
        body: body instanceof FormData || body === undefined ? body : JSON.stringify(body),
      })
    const submit = () => call('POST', '/jobs', { workflow: WORKFLOW })
    const jobs: string[] = []
    for (let count = 0; count < 30; count++) jobs.push(((await (await submit()).json()) as { id: string }).id)
    const form = new FormData()
    form.set('content_type', 'text/plain')
    form.set('file_path', 'note.txt')
    form.set('file', new Blob(['a note']), 'note.txt')
    const asset = (await (await call('POST', '/assets', form)).json()) as { id: string }

    // The service's own view of the folder: from outside the small file system is not to be seen.
    const filler = join('/proc', String(server.pid), 'root', directory, 'filler')
    fill(filler)
    let refused = await submit()
    // The WAL may have room from before, so the first submits may still be accepted.
    for (let tries = 0; refused.status === 201 && tries < 2_000; tries++) refused = await submit()
    const { error } = (await refused.json()) as { error: { code: string; details: { reason: string } } }
    assert.equal(error.code, 'upstream_error')
    assert.equal((await call('DELETE', `/assets/${asset.id}`)).status, 204)
    for (const id of jobs) {
      const answer = await call('POST', `/jobs/${id}/cancel`)
      assert.equal(answer.status, 200, await answer.text())
    }
    const shown = (await (await call('GET', `/jobs/${jobs[0]}`)).json()) as { status: string }
    assert.equal(shown.status, 'canceled')

    rmSync(filler)
    await waitUntil(async () => (await submit()).status === 201)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
})
