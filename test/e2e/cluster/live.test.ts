/** A job that one process took and another one runs, as the clients of a third process see it: no worse than in one process. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { WebSocket } from 'ws'
import { startFleetApp } from '../../support/app/fleet-app.ts'
import type { SpawnedServer } from '../../support/app/spawn-server.ts'
import { runInProcess } from '../../support/cli/in-process.ts'
import { openEvents } from '../../support/clients/event-reader.ts'
import { LegacyClient } from '../../support/clients/legacy-client.ts'
import { type Frame, isText, openSocket, type TestSocket } from '../../support/clients/test-socket.ts'
import { openRoleProcesses, untilStatus } from '../../support/cluster/role-processes.ts'
import { type FakeComfy, startFakeComfy } from '../../support/engines/fake-comfyui/fake-comfyui.ts'
import { waitUntil } from '../../support/wait-until.ts'

const step = (image: readonly [string, number], seed: number) => ({
  class_type: 'DemoSteps',
  inputs: { steps: 1, ms: 1, preview: true, image, seed },
})

/** Each node shows one preview: what follows it must not come before it. */
function graphOf(seed: number) {
  return {
    '1': { class_type: 'EmptyImage', inputs: { width: 8, height: 8, batch_size: 1, color: seed } },
    '2': step(['1', 0], seed),
    '3': step(['2', 0], seed + 1),
    '4': step(['3', 0], seed + 2),
    '5': { class_type: 'DemoText', inputs: { image: ['4', 0] } },
    '6': { class_type: 'SaveImageWebsocket', inputs: { images: ['5', 0] } },
    '7': { class_type: 'SaveImage', inputs: { images: ['5', 0], filename_prefix: 'live' } },
  }
}

async function connect(url: string, clientId: string): Promise<TestSocket> {
  return openSocket(new WebSocket(`${url.replace('http', 'ws')}/ws?clientId=${clientId}`))
}

const isEnd = (frame: Frame) => isText(frame, 'executing') && frame.data['node'] === null

/** What was told of the run itself: how often the queue's length is repeated depends on the time. */
function outline(frames: readonly Frame[]): string[] {
  return frames.flatMap((frame) => {
    if ('binary' in frame) return `binary ${frame.binary.readUInt32BE(0)}`
    if (frame.type === 'status') return []
    const { node = '', value = '' } = frame.data as { node?: string; value?: number }
    return `${frame.type} ${node} ${value}`
  })
}

describe('two processes for requests and one for jobs, live', () => {
  const stack = new AsyncDisposableStack()
  let [here, there]: SpawnedServer[] = []
  let worker: SpawnedServer
  let fake: FakeComfy
  let databaseUrl = ''

  before(async () => {
    const processes = stack.use(await openRoleProcesses())
    databaseUrl = processes.databaseUrl
    fake = stack.use(await startFakeComfy({}))
    here = await processes.api()
    there = await processes.api()
    worker = await processes.worker(['--comfyui', fake.url.href])
    for (const { url } of [here, there])
      await waitUntil(async () => 'SaveImage' in (await new LegacyClient(url).get('/object_info')).json)
  })
  after(() => stack.disposeAsync())

  test('a socket hears every event in the order of one process, previews and pictures included', async () => {
    await using alone = await startFleetApp({ servers: [{}] })
    const expected = await connect(alone.url, 'client')
    await new LegacyClient(alone.url).accepted(graphOf(1), { client_id: 'client' })
    await expected.until(isEnd)
    const told = outline(expected.frames)
    assert.ok(told.filter((words) => words.startsWith('binary 1')).length >= 4, told.join('\n'))
    for (const round of [1, 2, 3]) {
      const socket = await connect(here.url, `client-${round}`)
      await new LegacyClient(there.url).accepted(graphOf(100 * round), { client_id: `client-${round}` })
      await socket.until(isEnd)
      assert.deepEqual(outline(socket.frames), told, `round ${round}`)
      await socket.close()
    }
    await expected.close()
  })

  test('a stream shows how far the job is, and its previews', async () => {
    fake.hold('running')
    const id = await new LegacyClient(there.url).accepted(graphOf(1000))
    using events = openEvents(here.url, `/api/v2/jobs/${id}/events`, { Accept: 'text/event-stream' })
    assert.equal((await events.next())?.event, 'status')
    await untilStatus(here, id, 'running')
    fake.release('running')
    const frames = await events.rest()
    const names = frames.map(({ event }) => event)
    assert.ok(names.includes('preview'), names.join(' '))
    assert.ok(names.indexOf('preview') < names.findLastIndex((name) => name !== 'comment'), names.join(' '))
    await untilStatus(here, id, 'succeeded')
  })

  test('a client that connects in the middle of its run is told where it is', async () => {
    fake.hold('finishing')
    const id = await new LegacyClient(there.url).accepted(graphOf(2000), { client_id: 'late' })
    await fake.held('finishing')
    // What is younger than the time that a notice is on its way counts as news: this must be older.
    await new Promise((resolve) => setTimeout(resolve, 3000))
    const socket = await connect(here.url, 'late')
    try {
      await socket.until((each) => isText(each, 'executing') && each.data['node'] === '7')
      assert.ok(!socket.frames.some((each) => isText(each, 'execution_start')), 'what was long ago is no news')
    } finally {
      fake.release('finishing')
    }
    await socket.until(isEnd)
    await untilStatus(here, id, 'succeeded')
    await socket.close()
  })

  test('a file is there for whoever asks for it as soon as it is told of, through any process', async () => {
    const socket = await connect(here.url, 'viewer')
    // Slow enough that it is asked for before it is stored.
    fake.faults.viewBytesPerSecond = 40
    try {
      await new LegacyClient(there.url).accepted(graphOf(3000), { client_id: 'viewer' })
      const told = await socket.until((frame) => isText(frame, 'executed'))
      assert.ok('type' in told)
      const [image] = (told.data as { output: { images: { filename: string; subfolder: string }[] } }).output.images
      const query = new URLSearchParams({ ...image, type: 'output' })
      const views = await Promise.all([here, there].map(({ url }) => new LegacyClient(url).get(`/view?${query}`)))
      assert.deepEqual(
        views.map(({ status }) => status),
        [200, 200],
      )
      assert.ok(views[0].bytes.equals(views[1].bytes))
      const missing = await new LegacyClient(there.url).get('/view?filename=nobody-made-this.png')
      assert.equal(missing.status, 404)
    } finally {
      fake.faults.viewBytesPerSecond = null
    }
    await socket.close()
  })

  test('the doctor reaches every process, and says which it does not', async () => {
    const env = { ATELIER_DATABASE: databaseUrl, ATELIER_SECRET_KEY: 'ab'.repeat(32) }
    const cwd = process.cwd()
    const healthy = await runInProcess(['doctor', '--port', '0'], { cwd, env })
    assert.match(healthy.stdout, /ok {4}bus +all 3 processes are reached from here/)
    const stranger = await runInProcess(['doctor', '--port', '0'], {
      cwd,
      env: { ...env, ATELIER_SECRET_KEY: 'cd'.repeat(32) },
    })
    assert.equal(stranger.stdout.match(/warn {2}bus +.*does not accept our secret key/g)?.length, 3)
  })

  test('nobody is told that the bus is degraded, and its figures are there', async () => {
    for (const { url } of [here, there, worker]) {
      const client = new LegacyClient(url, { authorization: '' })
      assert.equal((await client.get('/readyz')).json.degraded, undefined)
      const { text } = await client.get('/metrics')
      for (const name of ['atelier_bus_hearing 1', 'atelier_bus_lag_seconds 0', 'atelier_bus_links_broken 0'])
        assert.ok(text.includes(name), `${name} is missing at ${url}`)
    }
  })
})
