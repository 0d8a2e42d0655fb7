/**
 * Servers whose machine is ill, beside sound ones: what fails there through no fault of its own runs elsewhere, the server is rested and
 * tried again, and a bad recipe stops nobody.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type FleetApp, pictureGraph, startFleetApp } from '../../support/app/fleet-app.ts'
import { ADMIN_TOKEN } from '../../support/app/join-worker.ts'
import { call } from '../../support/clients/call.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { waitUntil } from '../../support/wait-until.ts'

const NO_ROOM = { type: 'OSError', message: "[Errno 28] No space left on device: '/output/x_00001_.png'" }
const ILLNESSES = [
  NO_ROOM,
  { type: 'OSError', message: '[Errno 30] Read-only file system' },
  { type: 'PermissionError', message: "[Errno 13] Permission denied: '/output'" },
  { type: 'ModuleNotFoundError', message: "No module named 'torchaudio'" },
  { type: 'RuntimeError', message: 'CUDA error: no kernel image is available for execution on the device' },
]
const ENDED = ['succeeded', 'failed', 'canceled', 'expired']

let color = 0
function good(): Record<string, object> {
  color += 1
  return pictureGraph(color)
}

/** A recipe that fails on every server. */
function bad(type: string): Record<string, object> {
  color += 1
  return {
    ...pictureGraph(color),
    '2': { class_type: 'DemoRaise', inputs: { image: ['1', 0], exception_type: type, message: `no good ${color}` } },
    '4': { class_type: 'SaveImage', inputs: { images: ['2', 0], filename_prefix: 'x' } },
  }
}

async function endsOf(app: FleetApp, ids: readonly string[]) {
  const jobs = await Promise.all(ids.map((id) => app.until(id, ...ENDED)))
  return jobs.map(({ status, error }) => (error == null ? status : `${status}: ${error.code}: ${error.message}`))
}

async function submitAll(app: FleetApp, graphs: readonly object[]): Promise<string[]> {
  const ids: string[] = []
  for (const graph of graphs) ids.push(await app.submit(graph))
  return ids
}

const many = <Item>(count: number, make: () => Item) => Array.from({ length: count }, make)
const stateOf = (app: FleetApp, id: string) => app.fleet.find(id).state
const succeeded = (count: number) => many(count, () => 'succeeded')

for (const isJoined of [false, true]) {
  describe(isJoined ? 'at a joined worker' : 'in the service', () => {
    test('with a full disk on one of three servers every job succeeds, and the server is rested with the reason shown', async () => {
      const servers = many(3, () => ({}))
      await using app = await startFleetApp({ servers, isJoined, adminToken: ADMIN_TOKEN, quarantineMs: 600_000 })
      app.fakes[0].faults.raises = NO_ROOM
      assert.deepEqual(await endsOf(app, await submitAll(app, many(24, good))), succeeded(24))
      assert.equal(stateOf(app, 'gpu1'), 'quarantined')
      assert.equal(app.fakes[0].executions.length, 1, 'it was given no further job')
      const shown = await waitUntil(async () => {
        const headers = { authorization: `Bearer ${ADMIN_TOKEN}` }
        const { json } = await call(app.url, '/admin/v1/engines', { headers })
        // biome-ignore lint/suspicious/noExplicitAny: an engine as the API shows it
        return (json.engines ?? json.data).find(({ state }: any) => state === 'quarantined') ?? null
      })
      assert.match(shown.reason, /No space left on device/)
    })
  })
}

test('a server that recovers is tried with one job, and then takes as many as before', async () => {
  await using app = await startFleetApp({ servers: [{}, {}], quarantineMs: 20 })
  const [ill, sound] = app.fakes
  ill.faults.raises = NO_ROOM
  assert.deepEqual(await endsOf(app, await submitAll(app, many(6, good))), succeeded(6))
  assert.ok(ill.executions.length > 0)
  ill.faults.raises = null
  app.fleet.cordon('gpu2')
  assert.deepEqual(await endsOf(app, await submitAll(app, many(3, good))), succeeded(3))
  assert.deepEqual([stateOf(app, 'gpu1'), app.fleet.find('gpu1').reason], ['ready', null])
  assert.ok(sound.executions.length > 0)
})

test('a server that is alone is not rested: a job is tried once more and then fails with what the machine said', async () => {
  await using app = await startFleetApp({ servers: [{}] })
  app.fakes[0].faults.raises = NO_ROOM
  const [end] = await endsOf(app, await submitAll(app, [good()]))
  assert.match(end, /^failed: machine_fault: \[Errno 28\] No space left on device/)
  assert.deepEqual([app.fakes[0].executions.length, stateOf(app, 'gpu1')], [2, 'ready'])
  app.fakes[0].faults.raises = null
  assert.deepEqual(await endsOf(app, await submitAll(app, [good()])), ['succeeded'])
})

test('a recipe that fails alike on every server fails with its own error, and no server stays rested for it', async () => {
  await using app = await startFleetApp({ servers: many(3, () => ({})), quarantineMs: 600_000 })
  const ends = await endsOf(app, await submitAll(app, [...many(6, () => bad('ImportError')), ...many(6, good)]))
  assert.deepEqual(ends.slice(6), succeeded(6))
  for (const end of ends.slice(0, 6)) assert.match(end, /^failed: (?:node_execution_error|machine_fault): no good/)
  await waitUntil(() => ['gpu1', 'gpu2', 'gpu3'].every((id) => stateOf(app, id) === 'ready'))
})

test('a server that fails most of what others can do is found out by a second opinion, and rested', async () => {
  await using app = await startFleetApp({ servers: [{}, {}], quarantineMs: 600_000 })
  const [ill, sound] = app.fakes
  ill.faults.raises = { type: 'RuntimeError', message: 'shape mismatch in a patched attention' }
  // The other one is busy until the first job is to have a second opinion: nobody is free to give it at once.
  sound.hold('running')
  const ids = await submitAll(app, many(24, good))
  await waitUntil(() => ill.executions.length >= 5)
  sound.release('running')
  const ends = await endsOf(app, ids)
  assert.equal(ends.filter((end) => end !== 'succeeded').length, 4, ends.join('\n'))
  assert.equal(stateOf(app, 'gpu1'), 'quarantined')
  assert.match(app.fleet.find('gpu1').reason ?? '', /succeeded elsewhere.*shape mismatch/)
})

test('jobs that are wrong everywhere rest no server, however many there are', async () => {
  await using app = await startFleetApp({ servers: [{}, {}], quarantineMs: 600_000 })
  const rested = new Set<string>()
  app.fleet.onChange(() => {
    for (const { id, state } of app.fleet.status()) if (state === 'quarantined') rested.add(id)
  })
  const ends = await endsOf(
    app,
    await submitAll(
      app,
      many(24, () => bad('ValueError')),
    ),
  )
  for (const end of ends) assert.match(end, /^failed: node_execution_error: no good/)
  assert.deepEqual([...rested], [])
})

/**
 * Each server that is doubted is given a job while all others are busy: they would take it first, and so would one that has just proved
 * itself.
 */
async function allProveThemselves(app: FleetApp): Promise<void> {
  for (const [index, { id }] of app.fleet.status().entries()) {
    if (app.fleet.find(id).reason === null) continue
    const busy = app.fakes.filter((_, other) => other !== index)
    for (const fake of busy) fake.hold('running')
    const ids = await submitAll(app, many(app.fakes.length, good))
    await waitUntil(() => app.fleet.find(id).reason === null)
    for (const fake of busy) fake.release('running')
    assert.deepEqual(await endsOf(app, ids), succeeded(ids.length))
  }
}

describe('drawn fleets', () => {
  for (const seed of [1, 2, 3, 4]) {
    test(`seed ${seed}: what a sound server can run succeeds, what none can fails by itself, and all servers come back`, async () => {
      const random = seededRandom(seed)
      const count = random.between(2, 6)
      await using app = await startFleetApp({
        servers: many(count, () => ({ nodeMs: random.between(0, 8) })),
        quarantineMs: 200,
      })
      // One of them stays sound.
      const ill = app.fakes.slice(1).filter(() => random.next() < 0.6)
      let allRested = false
      app.fleet.onChange(() => {
        if (app.fleet.status().every(({ state }) => state === 'quarantined')) allRested = true
      })
      const expected: [string, RegExp][] = []
      for (let round = 0; round < 3; round += 1) {
        for (const fake of ill) fake.faults.raises = random.next() < 0.7 ? random.pick(ILLNESSES) : null
        for (let job = 0; job < 6; job += 1) {
          const draw = random.next()
          const graph = draw < 0.7 ? good() : bad(draw < 0.85 ? 'ValueError' : 'ImportError')
          // What looks like a fault of a machine on every server is told as the last one says it. A server that a stream of such
          // jobs brought in doubt is believed, but not against the job where all others are ill.
          const own =
            draw < 0.85
              ? /^failed: (?:node_execution_error|machine_fault): no good/
              : /^failed: (?:node_execution_error|machine_fault): /
          const end = draw < 0.7 ? /^succeeded$/ : own
          expected.push([await app.submit(graph), end])
        }
      }
      const ends = await endsOf(
        app,
        expected.map(([id]) => id),
      )
      for (const [index, [, end]] of expected.entries())
        assert.match(ends[index], end, `${count} servers, ${ill.length} ill`)
      assert.equal(allRested, false)
      for (const fake of ill) fake.faults.raises = null
      await allProveThemselves(app)
    })
  }
})
