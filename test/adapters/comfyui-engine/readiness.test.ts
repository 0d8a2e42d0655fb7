/** Whether a server is there and what it can run: seen soon, asked seldom. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { systemClock } from '../../../lib/clock.ts'
import { silentLog } from '../../../lib/log.ts'
import { type ComfyEngine, openComfyEngine } from '../../../src/adapters/engines/comfyui/comfy-engine.ts'
import { LONG_MS, shortBounds } from '../../support/engines/comfy-test-bounds.ts'
import { startFakeComfy } from '../../support/engines/fake-comfyui/fake-comfyui.ts'
import { findFreePort } from '../../support/network/free-port.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { BOUNDS, openEngineAt, openRig, runGraph, saveGraph, stepsGraph } from './support/harness.ts'

function until(engine: ComfyEngine, isSo: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const look = () => {
      if (!isSo()) return
      end()
      resolve()
    }
    const end = engine.onChange(look)
    look()
  })
}

describe('readiness', { concurrency: 4 }, () => {
  test('a server that is not there yet is found when it comes, and its loss and return are seen', async () => {
    const port = await findFreePort()
    await using engine = await openEngineAt(new URL(`http://127.0.0.1:${port}`))
    await until(engine, () => engine.health().lastError !== null)
    assert.equal(engine.health().state, 'starting')
    assert.equal(engine.objectInfo(), null)
    const first = await startFakeComfy({ port })
    await engine.untilReady()
    const { incarnation, version } = engine.health()
    assert.equal(version, '0.33.0')
    await first[Symbol.asyncDispose]()
    await until(engine, () => engine.health().state === 'lost')
    await using _second = await startFakeComfy({ port })
    await engine.untilReady()
    assert.ok(engine.health().incarnation > incarnation)
  })

  test('the first run on a server that took long to come is heard: its socket is tried as soon as it answers', async () => {
    const port = await findFreePort()
    await using engine = await openEngineAt(new URL(`http://127.0.0.1:${port}`), {
      reconnectFirstMs: LONG_MS,
      reconnectMaxMs: LONG_MS,
    })
    await until(engine, () => engine.health().lastError !== null)
    await using _fake = await startFakeComfy({ port })
    await engine.untilReady()
    const { events } = await runGraph(engine, stepsGraph(2, 1))
    assert.ok(events.some(({ type }) => type === 'node_progress'))
  })

  test('slow node classes delay readiness; classes that are no JSON prevent it until they are', async () => {
    await using fake = await startFakeComfy({ faults: { objectInfoMs: 300, garbage: { '/object_info': 2 } } })
    await using engine = await openEngineAt(fake.url)
    await until(engine, () => /object_info/.test(engine.health().lastError?.message ?? ''))
    assert.equal(engine.health().state, 'starting')
    await engine.untilReady()
    assert.ok(engine.catalog().classTypes().length > 100)
  })

  test('node classes are read once, not per run, and keep their identity while they are the same', async () => {
    await using rig = await openRig({}, { catalogMinMs: 60_000 })
    const info = rig.engine.objectInfo()
    for (let color = 0; color < 5; color++) await runGraph(rig.engine, saveGraph(color))
    assert.equal(rig.fake.calls.get('GET /object_info'), 1)
    assert.equal(rig.engine.objectInfo(), info)
  })

  test('a refusal that the known classes do not explain has them read again', async () => {
    await using rig = await openRig({ checkpoints: ['old.safetensors'] })
    rig.fake.install({ checkpoints: ['new.safetensors'] })
    const seen = until(rig.engine, () =>
      JSON.stringify(rig.engine.objectInfo()?.CheckpointLoaderSimple).includes('new.safetensors'),
    )
    await runGraph(rig.engine, {
      '1': { class_type: 'CheckpointLoaderSimple', inputs: { ckpt_name: 'old.safetensors' } },
      '2': { class_type: 'PreviewAny', inputs: { source: ['1', 0] } },
    })
    await seen
  })

  test('an older server without features, jobs API and logs can be used as well', async () => {
    await using rig = await openRig({ version: '0.3.10', faults: { noFeatures: true, noJobsApi: true, noLogs: true } })
    const { events } = await runGraph(rig.engine, saveGraph(1))
    assert.equal(events.at(-1)?.type, 'succeeded')
    assert.equal(rig.engine.health().version, '0.3.10')
  })

  test('a server that answers only what a run needs can be used as well, and stays ready', async () => {
    await using rig = await openRig({ faults: { isBare: true, noJobsApi: true } }, { probeEveryMs: 10 })
    const graph = { ...saveGraph(1), '3': { class_type: 'LoadImage', inputs: { image: 'a.png' } } }
    for (let tries = 0; tries < 3; tries++) {
      const { events } = await runGraph(rig.engine, graph, { files: { 'a.png': Buffer.from('a') } })
      assert.equal(events.at(-1)?.type, 'succeeded')
    }
    await waitUntil(() => (rig.fake.calls.get('GET /prompt') ?? 0) >= 5)
    assert.deepEqual([rig.engine.health().state, rig.engine.health().version], ['ready', null])
  })

  test('credentials in an address are sent and never shown', async () => {
    await using fake = await startFakeComfy()
    const url = new URL(fake.url)
    url.username = 'me'
    url.password = 'hidden words'
    await using engine = await openEngineAt(url)
    await engine.untilReady()
    assert.ok(!JSON.stringify([engine.id, engine.details(), engine.health()]).includes('hidden'))
    assert.equal(fake.lastAuthorization, `Basic ${Buffer.from('me:hidden words').toString('base64')}`)
  })

  test('a socket that is cut in the middle of a run is opened again and brings further events of it', async () => {
    await using rig = await openRig({ faults: { unwindSocketMs: 60 } }, shortBounds('socketSilenceMs'))
    const enough = new AbortController()
    let cutAt = Number.POSITIVE_INFINITY
    const { events } = await runGraph(rig.engine, stepsGraph(100_000, 20), {
      signal: enough.signal,
      onEvent(event) {
        if (event.type !== 'node_progress' || event.value < 3) return
        if (rig.engine.health().reconnects >= 1 && event.value > cutAt + 1) return enough.abort()
        if (cutAt < event.value) return
        cutAt = event.value
        rig.fake.cutSockets()
      },
    })
    assert.equal(events.at(-1)?.type, 'interrupted', 'a step after the cut was heard')
  })

  test('what an earlier process of the service left on a server is ended; what others run there is not', async () => {
    await using fake = await startFakeComfy()
    const open = (ownerId: string) =>
      openComfyEngine({
        server: { kind: 'remote', url: fake.url },
        ownerId,
        bounds: { ...BOUNDS, ...shortBounds('vanishedMs') },
        log: silentLog,
        clock: systemClock,
      })
    const post = async (clientId: string, seed: number) => {
      const body = JSON.stringify({ prompt: stepsGraph(100_000, 5, seed), client_id: clientId })
      const answer = await fetch(new URL('/prompt', fake.url), { method: 'POST', body })
      return ((await answer.json()) as { prompt_id: string }).prompt_id
    }
    await post('atelier-me-1', 1)
    await post('atelier-me-2', 2)
    const foreign = await post('atelier-other-1', 3)
    await using engine = await open('me')
    await engine.untilReady()
    await waitUntil(() => fake.queue().running?.id === foreign)
    assert.equal(fake.queue().remaining(), 1)
  })

  test('beside other processes, only the one that drives a server ends what dead ones left there, and nothing of those that live', async () => {
    await using fake = await startFakeComfy()
    const post = async (instanceId: string, seed: number) => {
      const body = JSON.stringify({ prompt: stepsGraph(100_000, 5, seed), client_id: `atelier-me-${instanceId}-1` })
      const answer = await fetch(new URL('/prompt', fake.url), { method: 'POST', body })
      return ((await answer.json()) as { prompt_id: string }).prompt_id
    }
    const dead = await post('dead', 1)
    const living = await post('living', 2)
    let isHeld = false
    await using engine = await openComfyEngine({
      server: { kind: 'remote', url: fake.url },
      ownerId: 'me',
      instanceId: 'now',
      siblings: { findLive: async () => new Set(['now', 'living']), mayEndOrphans: () => isHeld },
      bounds: { ...BOUNDS, ...shortBounds('vanishedMs') },
      log: silentLog,
      clock: systemClock,
    })
    await engine.untilReady()
    await engine.takeOver?.()
    assert.deepEqual([fake.queue().running?.id, engine.health().unfit], [dead, null], 'another process drives it')
    isHeld = true
    await engine.takeOver?.()
    await waitUntil(() => fake.queue().running?.id === living)
    await waitUntil(() => engine.health().unfit === null)
    assert.equal(fake.queue().running?.id, living)
  })

  test('a server gets no work while a prompt of an earlier process runs on it, and that prompt is removed from its history first', async () => {
    await using fake = await startFakeComfy({ faults: { ignoreInterrupt: true } })
    fake.hold('finishing')
    const body = JSON.stringify({ prompt: stepsGraph(1, 0), client_id: 'atelier-me-1', prompt_id: randomUUID() })
    const { prompt_id } = (await (await fetch(new URL('/prompt', fake.url), { method: 'POST', body })).json()) as {
      prompt_id: string
    }
    await fake.held('finishing')
    await using engine = await openComfyEngine({
      server: { kind: 'remote', url: fake.url },
      ownerId: 'me',
      bounds: { ...BOUNDS, ...shortBounds('vanishedMs') },
      log: silentLog,
      clock: systemClock,
    })
    await engine.untilReady()
    assert.match(String(engine.health().unfit), /still there/)
    const { promise: fit, resolve } = Promise.withResolvers<boolean>()
    engine.onChange(() => {
      if (engine.health().unfit === null) resolve(fake.queue().history.has(prompt_id))
    })
    fake.release('finishing')
    assert.equal(await fit, false, 'its record is gone')
    assert.equal(fake.queue().remaining(), 0)
  })

  test('the same server under another name does not end what the first one runs there', async () => {
    await using fake = await startFakeComfy()
    const open = (url: string) =>
      openComfyEngine({
        server: { kind: 'remote', url: new URL(url) },
        ownerId: 'me',
        instanceId: 'now',
        bounds: BOUNDS,
        log: silentLog,
        clock: systemClock,
      })
    await using first = await open(fake.url.href)
    await first.untilReady()
    fake.hold('running')
    const run = runGraph(first, stepsGraph(2, 0))
    await fake.held('running')
    await using second = await open(`http://localhost:${fake.port}`)
    await second.untilReady()
    fake.release('running')
    assert.equal((await run).events.at(-1)?.type, 'succeeded')
  })
})
