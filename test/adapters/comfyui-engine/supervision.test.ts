/** Servers that are ours: started, watched, replaced and ended, as real processes. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { systemClock } from '../../../lib/clock.ts'
import { silentLog } from '../../../lib/log.ts'
import type { ComfyBounds } from '../../../src/adapters/engines/comfyui/comfy-bounds.ts'
import { type ComfyEngine, openComfyEngine } from '../../../src/adapters/engines/comfyui/comfy-engine.ts'
import { CommandError } from '../../../src/adapters/engines/comfyui/launch/split-command.ts'
import { EngineLostError } from '../../../src/domain/engine/engine-lost-error.ts'
import { shortBounds } from '../../support/engines/comfy-test-bounds.ts'
import type { FakeOptions } from '../../support/engines/fake-comfyui/fake-options.ts'
import { BOUNDS, ofType, runGraph, saveGraph, stepsGraph } from './support/harness.ts'

const FAKE = fileURLToPath(new URL('../../support/engines/fake-comfyui/main.ts', import.meta.url))

function commandOf(options: FakeOptions = {}): string {
  return `'${process.execPath}' '${FAKE}' --port {port} --options '${JSON.stringify(options)}'`
}

function openSupervised(command: string, bounds: Partial<ComfyBounds> = {}): Promise<ComfyEngine> {
  return openComfyEngine({
    server: { kind: 'supervised', command, killGraceMs: 300, restartFirstMs: 20, restartMaxMs: 200 },
    id: 'ours',
    bounds: { ...BOUNDS, probeMaxMs: 100, ...bounds },
    log: silentLog,
    clock: systemClock,
  })
}

/** Resolves at the next state in which the process is another one and answers. */
function nextIncarnation(engine: ComfyEngine): Promise<void> {
  const { incarnation } = engine.health()
  return new Promise((resolve) => {
    const end = engine.onChange(() => {
      const health = engine.health()
      if (health.incarnation === incarnation || health.state !== 'ready') return
      end()
      resolve()
    })
  })
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** The process that listens: the fake says its pid to whoever asks for its printed lines. */
async function pidOf(engine: ComfyEngine): Promise<number> {
  const { events } = await runGraph(engine, {
    '1': { class_type: 'EmptyImage', inputs: { width: 8, height: 8, batch_size: 1, color: 1 } },
    '2': { class_type: 'DemoPid', inputs: { image: ['1', 0] } },
  })
  const item = ofType(events, 'node_report').at(-1)?.report.pid?.[0]
  assert.ok(item?.kind === 'value')
  return Number(item.value)
}

describe('supervised servers', { concurrency: 3 }, () => {
  test('one that never records a run and does not end it is replaced by a new process', async () => {
    const command = commandOf({ faults: { diesUnrecorded: true } as FakeOptions['faults'] })
    await using engine = await openSupervised(command, shortBounds('idleMs', 'stopGraceMs'))
    await engine.untilReady()
    const replaced = nextIncarnation(engine)
    const { events } = await runGraph(engine, saveGraph(1))
    assert.equal(events.at(-1)?.type, 'succeeded')
    assert.match(String(engine.health().unfit), /still there/)
    await replaced
    assert.equal(engine.health().unfit, null)
  })

  test('one is started, runs, prints, reports its memory, and is gone when the engine is closed', async () => {
    await using engine = await openSupervised(commandOf())
    await engine.untilReady()
    const pid = await pidOf(engine)
    const { memoryBytes, startedAt } = engine.health()
    assert.ok(memoryBytes !== null && memoryBytes > 1_000_000 && startedAt !== null)
    const { events } = await runGraph(engine, {
      '1': { class_type: 'EmptyImage', inputs: { width: 8, height: 8, batch_size: 1, color: 2 } },
      '2': { class_type: 'DemoPrint', inputs: { image: ['1', 0], text: 'printed by the process' } },
      '3': { class_type: 'PreviewImage', inputs: { images: ['2', 0] } },
    })
    assert.deepEqual(
      ofType(events, 'log').map(({ text }) => text),
      ['printed by the process\n'],
    )
    await engine[Symbol.asyncDispose]()
    assert.equal(isAlive(pid), false)
  })

  // The second tells nothing over its socket either: a line may come before the news that its run has begun.
  for (const faults of [{ noLogs: true }, { noLogs: true, silentSocket: true }])
    test(`one that cannot send its lines is heard through its output: ${Object.keys(faults)}`, async () => {
      await using engine = await openSupervised(commandOf({ faults }))
      await engine.untilReady()
      await pidOf(engine)
      const { events } = await runGraph(engine, {
        '1': { class_type: 'EmptyImage', inputs: { width: 8, height: 8, batch_size: 1, color: 2 } },
        '2': { class_type: 'DemoPrint', inputs: { image: ['1', 0], text: 'printed by the process' } },
        '3': { class_type: 'PreviewImage', inputs: { images: ['2', 0] } },
      })
      assert.deepEqual(
        ofType(events, 'log').map(({ text }) => text),
        ['printed by the process\n'],
      )
    })

  test('one that is killed loses its run at once, and another process is started', async () => {
    await using engine = await openSupervised(commandOf())
    await engine.untilReady()
    const pid = await pidOf(engine)
    const again = nextIncarnation(engine)
    // While the next process starts, a question that nobody answers may follow as the last error.
    const errors = new Set<string>()
    engine.onChange(() => errors.add(engine.health().lastError?.message ?? ''))
    const run = runGraph(engine, stepsGraph(10_000, 5), {
      onEvent: ({ type }) => (type === 'node_progress' && isAlive(pid) ? process.kill(pid, 'SIGKILL') : undefined),
    })
    await assert.rejects(run, (error) => error instanceof EngineLostError && error.code === 'engine_unreachable')
    await again
    const { events } = await runGraph(engine, saveGraph(1))
    assert.equal(events.at(-1)?.type, 'succeeded')
    assert.match([...errors].join('\n'), /SIGKILL/)
  })

  test('one is recycled on demand: another process, at the same address', async () => {
    await using engine = await openSupervised(commandOf())
    await engine.untilReady()
    const pid = await pidOf(engine)
    const { url } = engine.details()
    const again = nextIncarnation(engine)
    await engine.recycle?.('worn out')
    assert.equal(isAlive(pid), false)
    await again
    assert.notEqual(await pidOf(engine), pid)
    assert.equal(engine.details().url, url)
  })

  test('one that cannot be started says why and goes on trying', async () => {
    await using engine = await openSupervised('/no/such/program --port {port}')
    await new Promise<void>((resolve) => {
      const end = engine.onChange(() => {
        if (!/ENOENT/.test(engine.health().lastError?.message ?? '')) return
        end()
        resolve()
      })
    })
    assert.equal(engine.health().state, 'starting')
  })

  test('a command that does not say where its port goes is refused', async () => {
    await assert.rejects(openSupervised('python main.py'), CommandError)
  })

  test('when the service is killed, its server goes as well', async () => {
    const script = `
      const { openComfyEngine } = await import(${JSON.stringify(new URL('../../../src/adapters/engines/comfyui/comfy-engine.ts', import.meta.url).href)})
      const log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log }
      const engine = await openComfyEngine({
        server: { kind: 'supervised', command: ${JSON.stringify(commandOf())}, killGraceMs: 300 },
        id: 'ours', log, clock: { now: () => new Date() },
      })
      await engine.untilReady()
      console.log(engine.details().url)`
    const service: ChildProcess = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    after(() => service.kill('SIGKILL'))
    const [line] = (await once(service.stdout as NodeJS.ReadableStream, 'data')) as [Buffer]
    const url = new URL(String(line).trim())
    assert.equal((await fetch(new URL('/prompt', url))).status, 200)
    service.kill('SIGKILL')
    for (let isThere = true; isThere; )
      isThere = await fetch(new URL('/prompt', url)).then(
        () => true,
        () => false,
      )
  })
})
