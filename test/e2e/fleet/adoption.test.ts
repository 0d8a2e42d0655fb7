/** Runs on servers while the service is killed, stopped and started again: they go on, and the next process takes them on. */
import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { pictureGraph } from '../../support/app/fleet-app.ts'
import { type SpawnedServer, spawnServer } from '../../support/app/spawn-server.ts'
import { call } from '../../support/clients/call.ts'
import { openEvents } from '../../support/clients/event-reader.ts'
import { type FakeComfy, startFakeComfy } from '../../support/engines/fake-comfyui/fake-comfyui.ts'
import { hasRealComfyui, startRealComfyui } from '../../support/engines/real-comfyui.ts'
import { waitUntil } from '../../support/wait-until.ts'

const FAKE_MAIN = fileURLToPath(new URL('../../support/engines/fake-comfyui/main.ts', import.meta.url))
const STEPS = {
  '1': { class_type: 'DemoSteps', inputs: { steps: 30_000, ms: 40, preview: true } },
  '2': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'x' } },
}

interface Restarted<Server> extends AsyncDisposable {
  readonly fake: Server
  start(): Promise<SpawnedServer>
}

async function openRestarted(flags: readonly string[] = []): Promise<Restarted<FakeComfy>> {
  return openOver(await startFakeComfy(), flags)
}

/** A service that is killed and started again, over a server that lives longer. */
async function openOver<Server extends AsyncDisposable & { readonly url: URL }>(
  server: Server,
  flags: readonly string[] = [],
): Promise<Restarted<Server>> {
  await using opening = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'atelier-adopted-'))
  opening.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }))
  opening.use(server)
  const opened = opening.move()
  return {
    fake: server,
    start: async () => opened.use(await spawnServer(['--data-dir', folder, '--comfyui', server.url.href, ...flags])),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

async function submit(url: string, workflow: object): Promise<string> {
  const answer = await call(url, '/api/v2/jobs', { method: 'POST', body: JSON.stringify({ workflow }) })
  assert.equal(answer.status, 201, answer.text)
  return answer.json.id
}

const read = async (url: string, id: string) => (await call(url, `/api/v2/jobs/${id}`)).json

async function untilStatus(url: string, id: string, status: string) {
  let last: unknown
  return waitUntil(
    async () => {
      const job = await read(url, id)
      last = job
      return job.status === status ? job : null
    },
    () => `${status}, and not ${JSON.stringify(last)}`,
  )
}

const gpuMsOf = async (url: string, id: string) =>
  Math.round((await call(url, `/console/v1/jobs/${id}`)).json.gpu_seconds * 1000)

describe('a run on a server', { concurrency: 2 }, () => {
  test('goes on while the service is killed, and its progress and previews with it', async () => {
    await using opened = await openRestarted()
    const { fake } = opened
    const killed = await opened.start()
    const id = await submit(killed.url, STEPS)
    const before = await waitUntil(async () => {
      const job = await read(killed.url, id)
      return (job.progress?.value ?? 0) > 0 ? job : null
    })
    await killed.killNow()
    const { url } = await opened.start()
    const back = await read(url, id)
    assert.deepEqual([back.status, back.started_at], ['running', before.started_at])
    using events = openEvents(url, `/api/v2/jobs/${id}/events`)
    for (let frame = await events.next(); frame?.event !== 'preview'; frame = await events.next())
      assert.ok(frame !== null)
    await waitUntil(async () => (await read(url, id)).progress.value > before.progress.value)
    assert.equal(fake.executions.length, 1)
    await call(url, `/api/v2/jobs/${id}/cancel`, { method: 'POST' })
    await untilStatus(url, id, 'canceled')
  })

  test('that ends while nobody looks is collected, and has taken as long as it took', async () => {
    await using opened = await openRestarted()
    const { fake } = opened
    const killed = await opened.start()
    fake.hold('running')
    const id = await submit(killed.url, pictureGraph(5))
    await fake.held('running')
    await killed.killNow()
    fake.release('running')
    await waitUntil(() => fake.queue().history.size === 1)
    const endedMs = Date.now()
    const { url } = await opened.start()
    const job = await untilStatus(url, id, 'succeeded')
    assert.ok(new Date(job.completed_at).getTime() <= endedMs, 'nobody pays for the time in which nobody looked')
    assert.equal(fake.executions.length, 1)
    assert.equal(await gpuMsOf(url, id), fake.executions[0]?.computedMs)
    await waitUntil(() => fake.queue().history.size === 0)
  })

  test('is left by a service that ends in order, when its drain time is over', async () => {
    await using opened = await openRestarted(['--drain-timeout', '100ms'])
    const { fake } = opened
    const first = await opened.start()
    fake.hold('running')
    const id = await submit(first.url, pictureGraph(6))
    await fake.held('running')
    assert.equal(await first.terminate(), 0)
    const { url } = await opened.start()
    assert.equal((await read(url, id)).status, 'running')
    fake.release('running')
    await untilStatus(url, id, 'succeeded')
    assert.equal(fake.executions.length, 1)
    assert.equal(await gpuMsOf(url, id), fake.executions[0]?.computedMs)
  })

  test('is stopped by a cancel that comes after the restart, or came before it', async () => {
    await using opened = await openRestarted()
    const { fake } = opened
    fake.hold('running')
    fake.faults.ignoreInterrupt = true
    const first = await opened.start()
    const id = await submit(first.url, pictureGraph(7))
    await fake.held('running')
    const waiting = await submit(first.url, pictureGraph(8))
    await call(first.url, `/api/v2/jobs/${id}/cancel`, { method: 'POST' })
    await first.killNow()
    fake.faults.ignoreInterrupt = false
    const second = await opened.start()
    await untilStatus(second.url, id, 'canceled')
    await waitUntil(() => fake.executions.length === 2)
    await second.killNow()
    const { url } = await opened.start()
    await waitUntil(async () => (await read(url, waiting)).status === 'running')
    await call(url, `/api/v2/jobs/${waiting}/cancel`, { method: 'POST' })
    await untilStatus(url, waiting, 'canceled')
    fake.release('running')
    assert.equal(fake.executions.length, 2)
  })

  test('that its server has forgotten begins anew, in the same attempt', async () => {
    await using opened = await openRestarted()
    const { fake } = opened
    fake.hold('running')
    const killed = await opened.start()
    const id = await submit(killed.url, pictureGraph(9))
    await fake.held('running')
    await killed.killNow()
    await fake.restart()
    fake.release('running')
    const { url } = await opened.start()
    const job = await untilStatus(url, id, 'succeeded')
    assert.equal(job.outputs.length, 1)
    assert.equal(fake.executions.length, 2)
  })

  test('is computed once when the answer to its submit was lost, and when half of its picture was fetched', async () => {
    await using opened = await openRestarted()
    const { fake } = opened
    fake.hold('running')
    fake.faults.dropPromptReply = 1
    const first = await opened.start()
    const id = await submit(first.url, pictureGraph(10))
    await fake.held('running')
    await first.killNow()
    const second = await opened.start()
    fake.faults.viewBytesPerSecond = 20
    fake.release('running')
    await waitUntil(() => fake.asked('/view') > 0)
    await second.killNow()
    fake.faults.viewBytesPerSecond = null
    const { url } = await opened.start()
    const job = await untilStatus(url, id, 'succeeded')
    assert.deepEqual([job.outputs.length, job.outputs_replaced], [1, 0])
    assert.equal(fake.executions.length, 1)
  })

  test('whose server died together with the service goes on elsewhere as soon as nobody answers there', async () => {
    await using other = await startFakeComfy()
    await using opened = await openRestarted(['--comfyui', other.url.href])
    const servers = [opened.fake, other]
    for (const server of servers) server.hold('running')
    const killed = await opened.start()
    const id = await submit(killed.url, pictureGraph(11))
    const [dead, left] = await Promise.race([
      opened.fake.held('running').then(() => servers),
      other.held('running').then(() => servers.toReversed()),
    ])
    await killed.killNow()
    await dead?.[Symbol.asyncDispose]()
    left?.release('running')
    const { url } = await opened.start()
    // Of a server that might still run it nothing is taken back for two minutes: longer than a test waits.
    const job = await untilStatus(url, id, 'succeeded')
    assert.equal(job.outputs.length, 1)
    assert.equal(left?.executions.length, 1)
  })
})

// Runs until a file appears, and writes down each time that it is run.
const WAITING_NODE = `import os, time, torch
from comfy.utils import ProgressBar

class TestWait:
    INPUT_TYPES = classmethod(lambda cls: {"required": {"folder": ("STRING", {})}})
    RETURN_TYPES = ("IMAGE",)
    FUNCTION = "run"
    CATEGORY = "test"

    def run(self, folder):
        with open(os.path.join(folder, "runs"), "a") as runs:
            runs.write("run\\n")
        bar = ProgressBar(100000)
        while not os.path.exists(os.path.join(folder, "go")):
            bar.update(1)
            time.sleep(0.1)
        return (torch.zeros(1, 8, 8, 3),)

NODE_CLASS_MAPPINGS = {"TestWait": TestWait}
`

if (hasRealComfyui) {
  test('a run on a real ComfyUI outlives two kills of the service, one of them over its end, and is computed once', async () => {
    await using opened = await openOver(await startRealComfyui(WAITING_NODE))
    const { url: comfyui, folder } = opened.fake
    const first = await opened.start()
    const wait = { class_type: 'TestWait', inputs: { folder } }
    const save = { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'x' } }
    const id = await waitUntil(() => submit(first.url, { '1': wait, '2': save }).catch(() => null))
    const before = await waitUntil(async () => {
      const job = await read(first.url, id)
      return (job.progress?.value ?? 0) > 0 ? job : null
    })
    await first.killNow()
    const second = await opened.start()
    await waitUntil(async () => (await read(second.url, id)).progress.value > before.progress.value)
    await second.killNow()
    await writeFile(join(folder, 'go'), '')
    const history = async () => Object.keys((await call(comfyui.origin, '/history')).json)
    await waitUntil(async () => (await history()).length === 1)
    const { url } = await opened.start()
    const job = await untilStatus(url, id, 'succeeded')
    assert.deepEqual([job.started_at, job.outputs.length], [before.started_at, 1])
    assert.equal(await readFile(join(folder, 'runs'), 'utf8'), 'run\n')
    await waitUntil(async () => (await history()).length === 0)
  })
}

test('a launched server that outlives its service and its keeper is ended at the next start', async () => {
  await using opening = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'atelier-left-'))
  opening.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }))
  const launch = `'${process.execPath}' '${FAKE_MAIN}' --port {port}`
  const flags = ['--data-dir', folder, '--comfyui-launch', launch]
  const first = opening.use(await spawnServer(flags))
  const readGroups = async () => {
    const names = await readdir(join(folder, 'launched')).catch(() => [])
    return Promise.all(names.map(async (name) => JSON.parse(await readFile(join(folder, 'launched', name), 'utf8'))))
  }
  const group = await waitUntil(async () => (await readGroups()).find(({ engine }) => engine !== null))
  // So that it cannot end its group when the service goes.
  process.kill(group.keeper.pid, 'SIGSTOP')
  await first.killNow()
  process.kill(group.keeper.pid, 'SIGKILL')
  process.kill(group.engine.pid, 0)
  const second = opening.use(await spawnServer(flags))
  assert.match(second.output(), /servers that outlived their service were ended/)
  await waitUntil(async () => !(await isRunning(group.engine)))
  assert.equal(await second.terminate(), 0)
  assert.deepEqual(await readGroups(), [])
})

/** Not one that has ended and that nobody has asked for its end yet. */
async function isRunning({ pid, startedAt }: { readonly pid: number; readonly startedAt: string }): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  return stat.includes(` ${startedAt} `) && !stat.includes(') Z ')
}
