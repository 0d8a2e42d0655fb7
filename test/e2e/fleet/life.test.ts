/** The fleet over time: starts with servers away, restarts of the service, servers of our own, and what an operator can ask. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { pictureGraph } from '../../support/app/fleet-app.ts'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { runAtelier } from '../../support/cli/atelier.ts'
import { call } from '../../support/clients/call.ts'
import { startFakeComfy } from '../../support/engines/fake-comfyui/fake-comfyui.ts'
import { findFreePort } from '../../support/network/free-port.ts'
import { waitUntil } from '../../support/wait-until.ts'

const FAKE_MAIN = fileURLToPath(new URL('../../support/engines/fake-comfyui/main.ts', import.meta.url))

async function submit(app: TestApp, workflow: object) {
  return call(app.url, '/api/v2/jobs', { method: 'POST', body: JSON.stringify({ workflow }) })
}

async function untilStatus(app: TestApp, jobId: string, status: string) {
  return waitUntil(async () => {
    const { json: job } = await call(app.url, `/api/v2/jobs/${jobId}`)
    if (job.status === status) return job
    assert.ok(['queued', 'running'].includes(job.status), `${job.status}: ${JSON.stringify(job.error)}`)
    return null
  })
}

describe('the life of a fleet', () => {
  test('a service that starts while its server is away knows what that can run, and queues', async () => {
    const port = await findFreePort()
    const fake = await startFakeComfy({ checkpoints: ['a.safetensors'], port })
    const settings = { comfyui: fake.url.href, engineWait: '10m' }
    const first = await startTestApp({ settings })
    const { json: done } = await submit(first, pictureGraph(1))
    await untilStatus(first, done.id, 'succeeded')
    await fake[Symbol.asyncDispose]()
    await using app = await startTestAgain(first, { ...settings, engineWait: '100ms' })
    assert.equal((await call(app.url, `/api/v2/jobs/${done.id}`)).json.status, 'succeeded')
    const unknown = await submit(app, pictureGraph(2, 'b.safetensors'))
    assert.equal(unknown.status, 422, 'the weights are known not to be there')
    const waiting = await submit(app, pictureGraph(2, 'a.safetensors'))
    assert.equal(waiting.status, 201)
    await using _back = await startFakeComfy({ checkpoints: ['a.safetensors'], port })
    await untilStatus(app, waiting.json.id, 'succeeded')
  })

  test('a service whose server was never there queues, and runs when it comes', async () => {
    const port = await findFreePort()
    await using app = await startTestApp({ settings: { comfyui: `http://127.0.0.1:${port}`, engineWait: '100ms' } })
    const possible = await submit(app, pictureGraph(1))
    assert.equal(possible.status, 201)
    assert.equal((await call(app.url, `/api/v2/jobs/${possible.json.id}`)).json.status, 'queued')
    await using _server = await startFakeComfy({ port })
    await untilStatus(app, possible.json.id, 'succeeded')
  })

  test('servers of our own are started with the service and run its jobs', async () => {
    const command = `${process.execPath} ${FAKE_MAIN} --port {port}`
    await using app = await startTestApp({
      settings: { comfyuiLaunch: command, comfyuiCount: '2', recycleAfter: '1', engineWait: '10m' },
    })
    for (let color = 1; color <= 4; color += 1) {
      const { json: job } = await submit(app, pictureGraph(color))
      await untilStatus(app, job.id, 'succeeded')
    }
    const engines = app.app.fleet.status()
    assert.deepEqual(
      engines.map(({ id, isSupervised }) => [id, isSupervised]),
      [
        ['launched-1', true],
        ['launched-2', true],
      ],
    )
    assert.ok(
      engines.some(({ counts }) => counts.recycles > 0),
      'each is replaced after a job, as was asked for',
    )
  })

  test('servers of our own call the service for their partner nodes, whichever port it gets', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'atelier-partner-'))
    try {
      const providers = join(dataDir, 'providers.json')
      await writeFile(providers, JSON.stringify({ bfl: { key: 'k' } }))
      const comfyuiLaunch = `'${process.execPath}' '${FAKE_MAIN}' --port {port}`
      await using app = await startTestApp({ settings: { comfyuiLaunch, engineWait: '10m', providers } })
      assert.equal(app.app.fleet.status()[0]?.state, 'ready', 'it is heard before the service is up')
      const line = await waitUntil(async () => {
        const { json } = await call(app.url, '/admin/v1/engines/launched-1/log')
        return json.lines.map(({ text }: { text: string }) => text).find((text: string) => /partner nodes/.test(text))
      })
      assert.equal(line, `partner nodes call ${app.url}`)
    } finally {
      await rm(dataDir, { recursive: true, force: true })
    }
  })

  test('the doctor tells of each server: health, load, node classes, weights, and what is wrong', async () => {
    await using fake = await startFakeComfy({ checkpoints: ['a.safetensors', 'b.safetensors'] })
    const dataDir = await mkdtemp(join(tmpdir(), 'atelier-doctor-'))
    try {
      const args = [
        'doctor',
        '--data-dir',
        dataDir,
        '--port',
        '0',
        '--comfyui',
        fake.url.href,
        '--comfyui',
        'http://127.0.0.1:9',
      ]
      const { stdout, code } = await runAtelier(args)
      assert.equal(code, 1)
      assert.match(
        stdout,
        new RegExp(`ok +engine ${fake.url.host} +ComfyUI 0\\.33\\.0.* in its queue, \\d+ node classes, 2 weights`),
      )
      assert.match(stdout, /fail +engine 127\.0\.0\.1:9 .*ECONNREFUSED/)
    } finally {
      await rm(dataDir, { recursive: true, force: true })
    }
  })
})

/** The same folder under other settings. */
async function startTestAgain(app: TestApp, settings: Readonly<Record<string, string>>): Promise<TestApp> {
  await app.app[Symbol.asyncDispose]()
  return startTestApp({ settings, dataDir: app.dataDir })
}
