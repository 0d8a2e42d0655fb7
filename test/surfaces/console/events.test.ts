/** GET /console/v1/events over the whole service: hello first, then every change of the account's jobs and of no others. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestApp } from '../../support/app/start-app.ts'
import { startShared } from '../../support/app/start-shared.ts'
import { checkAgainstSchema, createConsoleClient } from '../../support/clients/console-client.ts'
import { type EventReader, type Frame, openEvents } from '../../support/clients/event-reader.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'

const EVENTS = '/console/v1/events'
const SAVE = { '1': { class_type: 'FakeSave', inputs: { text: 'x' } } }
const GATE = { '2': { class_type: 'FakeGate', inputs: {} }, '3': { class_type: 'FakeSave', inputs: { text: 'y' } } }

/** The next frame that fits; everything before it is dropped. */
async function until(reader: EventReader, fits: (frame: Frame) => boolean): Promise<Frame> {
  for (;;) {
    const frame = await reader.next()
    if (frame === null) throw new Error('the stream ended')
    if (fits(frame)) return frame
  }
}

/** The first frame that fits each; they may come in any order. */
async function untilEach(reader: EventReader, fits: readonly ((frame: Frame) => boolean)[]): Promise<Frame[]> {
  const found = new Map<number, Frame>()
  while (found.size < fits.length) {
    const frame = await until(reader, (each) => fits.some((fit, index) => !found.has(index) && fit(each)))
    for (const [index, fit] of fits.entries()) if (!found.has(index) && fit(frame)) found.set(index, frame)
  }
  return fits.map((_, index) => found.get(index) as Frame)
}

const isJob = (id: string, status: string) => (frame: Frame) =>
  frame.event === 'job' && frame.data.id === id && frame.data.status === status

test('hello first, with what waits and runs; then each change, in the order of versions', async () => {
  const engine = createFakeEngine()
  await using app = await startTestApp({ overrides: { engine } })
  const client = createConsoleClient(app.url)
  const gated = await client.submit(GATE)
  await engine.untilRuns(1)
  using reader = openEvents(app.url, EVENTS)
  const hello = await reader.next()
  assert.equal(hello?.event, 'hello')
  assert.equal(hello?.data.counts.running, 1)
  const first = await until(reader, isJob(gated, 'running'))
  checkAgainstSchema('Summary', first.data)
  engine.openGate()
  // Counts are told at a pace of their own, which may be before the job.
  const [last, counts] = await untilEach(reader, [
    isJob(gated, 'succeeded'),
    ({ event, data }) => event === 'counts' && data.succeeded === 1,
  ])
  assert.ok(last?.data.version > first.data.version)
  assert.equal(last?.data.outputs, 1)
  checkAgainstSchema('Counts', counts?.data)
  const later = await client.submit(SAVE)
  await until(reader, isJob(later, 'succeeded'))
})

test('several readers are told the same; the second one begins with a hello of its own', async () => {
  const engine = createFakeEngine()
  await using app = await startTestApp({ overrides: { engine } })
  const client = createConsoleClient(app.url)
  using one = openEvents(app.url, EVENTS)
  await one.next()
  using two = openEvents(app.url, EVENTS)
  assert.equal((await two.next())?.event, 'hello')
  const id = await client.submit(SAVE)
  for (const reader of [one, two]) await until(reader, isJob(id, 'succeeded'))
})

test('an account hears of its own jobs only, and its stream ends when its key is revoked', async () => {
  await using shared = await startShared()
  const [ann, bob] = [await shared.account('ann'), await shared.account('bob')]
  using reader = openEvents(shared.url, EVENTS, { Authorization: `Bearer ${ann.key}` })
  assert.equal((await reader.next())?.event, 'hello')
  const foreign = await createConsoleClient(shared.url, bob.key).submit(SAVE)
  const own = await createConsoleClient(shared.url, ann.key).submit(SAVE)
  const seen: string[] = []
  await until(reader, (frame) => {
    if (frame.event === 'job') seen.push(frame.data.id)
    return isJob(own, 'succeeded')(frame)
  })
  assert.ok(!seen.includes(foreign))
  const keys = (await shared.admin('GET', '/accounts/ann/keys')).json
  const [{ id: keyId }] = keys.keys ?? keys
  await shared.admin('POST', `/keys/${keyId}/revoke`)
  const rest = await reader.rest()
  assert.ok(!rest.some((frame) => frame.event === 'hello'))
})

test('whoever may not read jobs is refused before the stream begins', async () => {
  await using app = await startTestApp({ settings: { token: 'a-token-of-this-test-only' } })
  using reader = openEvents(app.url, EVENTS)
  assert.match(await reader.head, /^HTTP\/1\.1 401/)
})
