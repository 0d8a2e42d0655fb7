/**
 * Jobs that wait in a server's own queue, and prompts that the service has given up: waits are bounded, a server gets work only
 * when none of our abandoned prompts is left on it, and a job that was moved away does not run when its old server comes back.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { systemClock } from '../../../lib/clock.ts'
import { silentLog } from '../../../lib/log.ts'
import { openComfyEngine } from '../../../src/adapters/engines/comfyui/comfy-engine.ts'
import { readPromptId } from '../../../src/adapters/engines/comfyui/run/comfy-prompt.ts'
import type { Fleet } from '../../../src/domain/engine/fleet/fleet.ts'
import { pictureGraph, startFleetApp } from '../../support/app/fleet-app.ts'
import { startTestApp } from '../../support/app/start-app.ts'
import { call } from '../../support/clients/call.ts'
import { CheckedClient, node } from '../../support/clients/checked-client.ts'
import { PATIENT_BOUNDS, shortBounds } from '../../support/engines/comfy-test-bounds.ts'
import { FakeComfyChild } from '../../support/engines/fake-comfyui/child.ts'
import type { FakeComfy } from '../../support/engines/fake-comfyui/fake-comfyui.ts'
import { waitUntil } from '../../support/wait-until.ts'

function foreignGraph(seed: number, steps = 1): object {
  return {
    '1': node('DemoSteps', { steps, ms: 10, preview: false, seed }),
    '2': node('SaveImage', { images: ['1', 0], filename_prefix: 'foreign' }),
  }
}

/** As another client of the same server does. */
async function postForeign({ url }: FakeComfy, graph: object): Promise<string> {
  const body = JSON.stringify({ prompt: graph, client_id: 'somebody' })
  const answer = await fetch(new URL('/prompt', url), { method: 'POST', body })
  return ((await answer.json()) as { prompt_id: string }).prompt_id
}

async function untilEngine(fleet: Fleet, id: string, state: string): Promise<string | null> {
  await waitUntil(
    () => fleet.find(id).state === state,
    () => `${id} is ${state}`,
  )
  return fleet.find(id).reason
}

describe("a job in a server's own queue", () => {
  test('goes elsewhere when the prompt of somebody else before it does not end, and spends no attempt', async () => {
    await using app = await startFleetApp({ servers: [{}, {}], bounds: shortBounds('queueStillMs') })
    const [busy, free] = app.fakes
    const { fleet } = app.service.app
    fleet.cordon('gpu2')
    busy.hold('running')
    const foreign = await postForeign(busy, foreignGraph(1))
    await busy.held('running')
    const id = await app.submit(pictureGraph(1))
    const reason = await untilEngine(fleet, 'gpu1', 'quarantined')
    assert.match(String(reason), /stands still/)
    fleet.resume('gpu2')
    await app.until(id, 'succeeded')
    assert.deepEqual(
      free.executions.map(({ promptId }) => readPromptId(promptId, id)),
      [{ attempt: 1, round: 0 }],
    )
    assert.deepEqual(
      [busy.queue().running?.id, busy.queue().pending],
      [foreign, []],
      'ours was withdrawn, and nothing else was touched',
    )
    busy.release('running')
    await untilEngine(fleet, 'gpu1', 'ready')
    fleet.cordon('gpu2')
    await app.until(await app.submit(pictureGraph(2)), 'succeeded')
  })

  test('runs after everything that others sent before it', async () => {
    await using app = await startFleetApp({ servers: [{}] })
    const [shared] = app.fakes
    const foreign = []
    for (let seed = 1; seed <= 5; seed += 1) foreign.push(await postForeign(shared, foreignGraph(seed, 20)))
    const id = await app.submit(pictureGraph(1))
    await app.until(id, 'succeeded')
    assert.deepEqual(
      shared.executions.map(({ promptId }) => readPromptId(promptId, id) ?? promptId),
      [...foreign, { attempt: 1, round: 0 }],
    )
  })

  test('runs after another job of ours', async () => {
    await using app = await startFleetApp({ servers: [{}], concurrency: 2 })
    const slow = await app.submit(foreignGraph(1, 60))
    await app.until(slow, 'running')
    const behind = await app.submit(pictureGraph(1))
    await app.until(behind, 'succeeded')
    await app.until(slow, 'succeeded')
    assert.equal(app.fakes[0].executions.length, 2)
  })

  test('goes elsewhere when nothing is heard of the job of ours before it', async () => {
    await using app = await startFleetApp({
      servers: [{}, {}],
      concurrency: 2,
      bounds: shortBounds('queueStillMs'),
    })
    const { fleet } = app.service.app
    const [hanging] = app.fakes
    fleet.cordon('gpu2')
    hanging.hold('running')
    const silent = await app.submit(pictureGraph(1))
    await hanging.held('running')
    const behind = await app.submit(pictureGraph(2))
    assert.match(String(await untilEngine(fleet, 'gpu1', 'quarantined')), /stands still/)
    fleet.resume('gpu2')
    await app.until(behind, 'succeeded')
    hanging.release('running')
    await app.until(silent, 'succeeded')
    await untilEngine(fleet, 'gpu1', 'ready')
  })

  test('can be canceled while it waits for a server that starts nothing', async () => {
    await using app = await startFleetApp({ servers: [{ faults: { deadWorker: true } }] })
    const id = await app.submit(pictureGraph(1))
    await app.until(id, 'running')
    await call(app.url, `/api/v2/jobs/${id}/cancel`, { method: 'POST' })
    await app.until(id, 'canceled')
    assert.equal(app.fakes[0].queue().remaining(), 0)
  })

  test('waits for a server that works when its only one starts nothing', async () => {
    await using app = await startFleetApp({
      servers: [{ faults: { deadWorker: true } }],
      bounds: shortBounds('idleMs'),
    })
    const [dead] = app.fakes
    const { fleet } = app.service.app
    const id = await app.submit(pictureGraph(1))
    assert.match(String(await untilEngine(fleet, 'gpu1', 'quarantined')), /nothing ran there/)
    assert.equal((await app.until(id, 'queued')).error, null)
    assert.equal(dead.queue().remaining(), 0)
    dead.faults.deadWorker = false
    fleet.resume('gpu1')
    await app.until(id, 'succeeded')
  })
})

describe('a server with a run of ours that nobody follows', () => {
  test('gets no work after a cancel as long as the canceled node runs on, whoever resumes it', async () => {
    await using app = await startFleetApp({
      servers: [{}],
      bounds: shortBounds('stopGraceMs', 'vanishedMs'),
    })
    const [fake] = app.fakes
    const { fleet } = app.service.app
    fake.faults.ignoreInterrupt = true
    fake.hold('running')
    const stubborn = await app.submit(pictureGraph(1))
    await fake.held('running')
    await call(app.url, `/api/v2/jobs/${stubborn}/cancel`, { method: 'POST' })
    await app.until(stubborn, 'canceled')
    await untilEngine(fleet, 'gpu1', 'quarantined')
    const next = await app.submit(pictureGraph(2))
    // The minute of its quarantine is over.
    fleet.resume('gpu1')
    assert.equal(fleet.find('gpu1').state, 'quarantined')
    assert.match(String(fleet.find('gpu1').reason), /given up is still there/)
    const looks = fake.calls.get('GET /queue') ?? 0
    await waitUntil(() => (fake.calls.get('GET /queue') ?? 0) >= looks + 5)
    assert.equal((await app.until(next, 'queued')).status, 'queued')
    assert.equal(fake.queue().remaining(), 1, 'nothing was sent there')
    fake.faults.ignoreInterrupt = false
    fake.release('running')
    await untilEngine(fleet, 'gpu1', 'ready')
    await app.until(next, 'succeeded')
  })

  test('that comes back after a pause does not run what was moved away', async () => {
    await using opened = new AsyncDisposableStack()
    const folder = await mkdtemp(join(tmpdir(), 'atelier-fleet-pause-'))
    opened.defer(() => rm(folder, { recursive: true, force: true }))
    const paused = opened.use(new FakeComfyChild({ nodeMs: 600_000, logPath: join(folder, 'paused.log') }))
    const other = opened.use(new FakeComfyChild({ nodeMs: 0, logPath: join(folder, 'other.log') }))
    await Promise.all([paused.start(), other.start()])
    // Of the one that is paused; the other one is waited for, however slow it is.
    const pausedBounds = shortBounds('callMs', 'unreachableMs', 'vanishedMs')
    const engines = await Promise.all(
      [paused, other].map(({ url }, index) =>
        openComfyEngine({
          id: `gpu${index + 1}`,
          server: { kind: 'remote', url: new URL(url) },
          concurrency: 2,
          bounds: { ...PATIENT_BOUNDS, ...(index === 0 && pausedBounds) },
          log: silentLog,
          clock: systemClock,
        }),
      ),
    )
    await Promise.all(engines.map((engine) => engine.untilReady()))
    const app = opened.use(await startTestApp({ overrides: { engines }, settings: { workers: '4' } }))
    const client = new CheckedClient(app.url)
    const { fleet } = app.app
    fleet.cordon('gpu2')
    const jobs = [await client.accepted(pictureGraph(1)), await client.accepted(pictureGraph(2))]
    const queueOf = async () => (await call(paused.url, '/queue')).json
    const isThere = async () => {
      const { queue_running, queue_pending } = await queueOf()
      return queue_running.length === 1 && queue_pending.length === 1
    }
    await waitUntil(isThere)
    paused.pause()
    fleet.resume('gpu2')
    for (const { id } of jobs) await client.untilStatus(id, 'succeeded')
    paused.resume()
    await untilEngine(fleet, 'gpu1', 'ready')
    assert.deepEqual(await queueOf(), { queue_running: [], queue_pending: [] })
    const news = paused.news()
    assert.equal(news.filter(({ what }) => what === 'begun').length, 1, 'what waited there was never begun')
    assert.deepEqual(
      news.filter(({ what, status }) => what === 'ended' && status === 'success'),
      [],
    )
    for (const { id } of jobs) {
      const { outputs } = await client.job(id)
      assert.equal(outputs.length, 1)
    }
  })
})
