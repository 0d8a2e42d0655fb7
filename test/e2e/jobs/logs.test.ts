/** Logs through the whole service. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { isOnPostgres } from '../../support/app/test-store.ts'
import { CheckedClient, node } from '../../support/clients/checked-client.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'

const KEPT_BYTES = 256 * 1024

describe('the log of a job', () => {
  let service: TestApp
  let client: CheckedClient
  const engine = createFakeEngine()
  before(async () => {
    service = await startTestApp({ overrides: { engine } })
    client = new CheckedClient(service.url)
  })
  after(() => service[Symbol.asyncDispose]())

  const logs = (id: string) => client.call(`/api/v2/jobs/${id}/logs`)

  test('is 204 without a body until the job has ended, then the text that it printed', async () => {
    const { id, urls } = await client.accepted({
      '1': node('FakeLog', { text: 'line\n', times: 3 }),
      '2': node('FakeGate'),
    })
    assert.equal(urls.logs, `/api/v2/jobs/${id}/logs`)
    await client.untilStatus(id, 'running')
    const early = await logs(id)
    assert.deepEqual([early.status, early.text], [204, ''])
    engine.openGate()
    const { completed_at } = await client.untilStatus(id, 'succeeded')
    const { status, json } = await logs(id)
    assert.deepEqual([status, json.text, json.truncated, json.complete], [200, 'line\nline\nline\n', false, true])
    assert.equal(json.captured_at, completed_at)
  })

  test('is kept after a failure and after a cancel as well', async () => {
    const failed = await client.run({ '1': node('FakeLog', { text: 'before the end' }), '2': node('FakeFail') })
    assert.match((await logs(failed.id)).json.text, /before the end/)
    const { id } = await client.accepted({ '1': node('FakeLog', { text: 'so far' }), '2': node('FakeHang') })
    await client.untilStatus(id, 'running')
    await engine.untilRuns(engine.runs.length)
    await client.cancel(id)
    await client.untilStatus(id, 'canceled')
    assert.ok([200, 204].includes((await logs(id)).status))
  })

  test('is 204 for good when nothing was printed or the job never ran; the link is there all the same', async () => {
    const quiet = await client.run({ '1': node('FakeSource') })
    assert.equal((await logs(quiet.id)).status, 204)
    assert.notEqual(quiet.urls.logs, '')
  })

  test('keeps its tail when it is long, and says so', async () => {
    const line = `${'é'.repeat(500)}\n`
    const job = await client.run({
      '1': node('FakeLog', { text: 'the very beginning\n' }),
      '2': node('FakeLog', { text: line, times: 1000 }),
      '3': node('FakeLog', { text: 'the very end' }),
    })
    const { json } = await logs(job.id)
    assert.deepEqual([json.truncated, json.complete], [true, true])
    assert.ok(Buffer.byteLength(json.text) <= KEPT_BYTES)
    assert.ok(Buffer.byteLength(json.text) > KEPT_BYTES - 10)
    assert.ok(json.text.endsWith('the very end'))
    assert.ok(!json.text.includes('beginning') && !json.text.includes('\ufffd'))
  })

  test('is JSON whatever the caller accepts', async () => {
    const { id } = await client.run({ '1': node('FakeLog', { text: '\u001b[31mred\u0000\u2028' }) })
    for (const accept of ['text/event-stream', 'text/plain', '*/*']) {
      const answer = await client.call(`/api/v2/jobs/${id}/logs`, { headers: { accept } })
      // Postgres keeps no U+0000; its symbol stands in its place.
      assert.deepEqual(
        [answer.status, answer.json.text],
        [200, `\u001b[31mred${isOnPostgres ? '\u2400' : '\u0000'}\u2028`],
      )
    }
  })
})

test('a log survives a restart', async () => {
  const first = await startTestApp({ overrides: { engine: createFakeEngine() } })
  const { id } = await new CheckedClient(first.url).run({ '1': node('FakeLog', { text: 'remember me' }) })
  const before = await new CheckedClient(first.url).call(`/api/v2/jobs/${id}/logs`)
  await using second = await first.restart()
  const after = await new CheckedClient(second.url).call(`/api/v2/jobs/${id}/logs`)
  assert.deepEqual([after.status, after.json], [200, before.json])
})

describe('the built-in engine', () => {
  // For the engine to do: until its runs print anything, these jobs answer 204, which the contract allows.
  test('leaves a log of every run, after success and failure alike', async () => {
    await using service = await startTestApp()
    const client = new CheckedClient(service.url)
    const picture = node('EmptyImage', { width: 8, height: 8, batch_size: 1, color: 0 })
    const good = await client.run({ '1': picture, '2': node('SaveImage', { images: ['1', 0], filename_prefix: 'x' }) })
    const log = await client.call(good.urls.logs)
    assert.equal(log.status, 200)
    assert.notEqual(log.json.text, '')
    await client.uploaded('broken.png', 'this is no picture')
    const bad = await client.run({
      '1': node('LoadImage', { image: 'broken.png' }),
      '2': node('SaveImage', { images: ['1', 0], filename_prefix: 'x' }),
    })
    assert.equal(bad.status, 'failed')
    assert.equal((await client.call(bad.urls.logs)).status, 200)
  })
})
