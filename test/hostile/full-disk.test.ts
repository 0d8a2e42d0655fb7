/**
 * A disk without a byte left, for real: the data folder, or that of the builder, is a small file system of its own, mounted where only
 * the service sees it, so that it is gone with the service.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, mkdtempSync, openSync, readdirSync, realpathSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { spawnServer } from '../support/app/spawn-server.ts'
import { withoutUv } from '../support/builds/bench.ts'
import { packFiles, writeWheel, zipOf } from '../support/builds/packages.ts'
import { writeRunning } from '../support/builds/running-comfyui.ts'
import { call } from '../support/clients/call.ts'
import { saying } from '../support/deployments/released-app.ts'
import { ADMIN_TOKEN, largeModel, openStudio, TARGET } from '../support/deployments/storm.ts'
import { waitUntil } from '../support/wait-until.ts'

const MOUNT = 'mount -t tmpfs -o size=40m none "$0" && exec "$@"'
const canMount = spawnSync('unshare', ['-m', 'sh', '-c', MOUNT, tmpdir(), 'true']).status === 0
const withoutMount = canMount ? false : 'needs the right to mount a file system (root on Linux)'
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
  skip: withoutMount,
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

const FILL = 'with open("filler", "wb") as file:\n    while True:\n        file.write(b"x" * 65536)\n'

test('a disk that fills up in the middle of a build fails it, leaves nothing of it, and what serves goes on', {
  skip: withoutMount || withoutUv,
}, async () => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'atelier-full-')))
  try {
    const disk = join(root, 'disk')
    mkdirSync(disk)
    const { builderFile, wheels } = await writeRunning(root, { target: TARGET, uv: null, more: { folder: disk } })
    await writeWheel(wheels, { name: 'huge', version: '1.0', code: `# ${'x'.repeat(30_000_000)}` })
    const flags = ['--kind', 'cloud', '--data-dir', join(root, 'data'), '--builder', builderFile, '--builds', 'ana']
    const env = { ATELIER_ADMIN_TOKEN: ADMIN_TOKEN, HOME: root }
    const prefix = ['unshare', '-m', 'sh', '-c', MOUNT, disk]
    await using server = await spawnServer([...flags, '--workers', '1'], env, { prefix })
    const studio = await openStudio({ ask: (at, options) => call(server.url, at, options) })
    const { api } = studio
    const first = await studio.cut({})
    const made = await api('POST', '/deploy/v1/deployments', {
      ...{ releaseId: first, computeConfig: { gpuClass: 'cpu', region: 'local', min: 1, max: 1 } },
    })
    assert.equal(made.status, 201, made.text)
    const at = `/deploy/v1/deployments/${made.json.id}`
    const serves = async (text: string) => {
      await waitUntil(async () => (await api('GET', at)).json.status === 'ready')
      const job = await api('POST', `/deployment/${made.json.id}/api/v2/jobs`, { workflow: saying(text) })
      assert.equal(job.status, 201, job.text)
      await waitUntil(async () => (await api('GET', `/api/v2/jobs/${job.json.id}`)).json.status === 'succeeded')
      return job.json.release_version
    }
    assert.equal(await serves('before'), 1)

    const packOf = async (name: string, files: Parameters<typeof zipOf>[0]) => ({
      customNodes: [{ name, blobId: await studio.upload('node_zip', `${name}.zip`, zipOf(files)) }],
    })
    const model = await studio.upload('model', 'large.safetensors', largeModel(64 * 1024 * 1024))
    const definitions = [
      await packOf('filling', { ...packFiles('Filling'), 'install.py': FILL }),
      await packOf('needing', packFiles('Needing', { requirements: 'huge' })),
      { models: [{ type: 'vae', filename: 'large.safetensors', blobId: model }] },
    ]
    // The service's own view of the folder, as above.
    const seen = join('/proc', String(server.pid), 'root', disk)
    for (const definition of definitions) {
      const { id, deployable, artifacts } = await studio.release(definition)
      assert.equal(deployable, false)
      assert.match(artifacts[0].failureReason, /^(?:freeze|assemble): the disk of the builder is full; delete releases/)
      assert.deepEqual(readdirSync(join(seen, 'releases', id, 'linux-cpu')), [])
      assert.deepEqual(readdirSync(join(seen, 'scratch')), [])
      assert.equal(await serves(id), 1)
    }
    const next = await studio.cut({})
    assert.equal((await api('PATCH', at, { baseRevision: 1, releaseId: next })).status, 202)
    await waitUntil(async () => (await api('GET', at)).json.revision === 2)
    assert.equal(await serves('after'), studio.versions.get(next))
  } finally {
    rmSync(root, { recursive: true, force: true, maxRetries: 5 })
  }
})
