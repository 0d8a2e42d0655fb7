/** Cancel through the whole service. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { CheckedClient, node, refused } from '../../support/clients/checked-client.ts'
import { sendRaw } from '../../support/clients/raw-http.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'

describe('a cancel', () => {
  let service: TestApp
  let client: CheckedClient
  const engine = createFakeEngine()
  before(async () => {
    service = await startTestApp({
      settings: { workers: '2' },
      patch: { jobs: { cancelGraceMs: 5000 } },
      overrides: { engine },
    })
    client = new CheckedClient(service.url)
  })
  after(async () => {
    engine.release()
    await service[Symbol.asyncDispose]()
  })

  test('ends a queued job at once, and it never runs', async () => {
    const gates = [await client.accepted({ '1': node('FakeGate') }), await client.accepted({ '1': node('FakeGate') })]
    for (const { id } of gates) await client.untilStatus(id, 'running')
    const queued = await client.accepted({ '1': node('FakeSave') })
    const answer = await client.cancel(queued.id)
    assert.deepEqual([answer.status, answer.json.status, answer.json.queue_position], [200, 'canceled', null])
    assert.ok(answer.json.completed_at !== null && answer.json.started_at === null)
    assert.deepEqual(answer.json, await client.job(queued.id))
    for (const _ of gates) engine.openGate()
    for (const { id } of gates) await client.untilStatus(id, 'succeeded')
    assert.ok(!engine.runs.some(({ jobId }) => jobId === queued.id))
    assert.equal((await client.cancel(queued.id)).json.status, 'canceled')
  })

  test('makes a running job canceling and then canceled, keeps its outputs, and stops no other', async () => {
    const victim = await client.accepted({ '1': node('FakeSave'), '2': node('FakeHang') })
    const neighbour = await client.accepted({ '1': node('FakeGate'), '2': node('FakeSave') })
    await client.until(victim.id, ({ outputs }) => outputs.length === 1)
    await client.untilStatus(neighbour.id, 'running')
    const answers = await Promise.all([client.cancel(victim.id), client.cancel(victim.id)])
    for (const { status, json } of answers) {
      assert.equal(status, 200)
      assert.match(json.status, /^cancel(ing|ed)$/)
    }
    const ended = await client.untilStatus(victim.id, 'canceled')
    assert.deepEqual([ended.outputs.length, ended.error], [1, null])
    assert.equal((await client.job(neighbour.id)).status, 'running')
    engine.openGate()
    assert.equal((await client.untilStatus(neighbour.id, 'succeeded')).outputs.length, 1)
  })

  test('of a run that does not listen shows canceling until the grace is over', async () => {
    engine.faults.ignoreAbort = true
    const { id } = await client.accepted({ '1': node('FakeHang') })
    await client.untilStatus(id, 'running')
    assert.equal((await client.cancel(id)).json.status, 'canceling')
    assert.equal((await client.job(id)).status, 'canceling')
    assert.equal((await client.call('/api/v2/jobs?status=canceling')).json.jobs[0].id, id)
    await client.untilStatus(id, 'canceled')
    engine.faults.ignoreAbort = false
  })

  test('that comes too late lets the job succeed', async () => {
    engine.faults.ignoreAbort = true
    const { id } = await client.accepted({ '1': node('FakeGate'), '2': node('FakeSave') })
    await client.untilStatus(id, 'running')
    assert.equal((await client.cancel(id)).json.status, 'canceling')
    engine.openGate()
    const ended = await client.untilStatus(id, 'succeeded')
    engine.faults.ignoreAbort = false
    assert.equal(ended.outputs.length, 1)
    const again = await client.cancel(id)
    assert.deepEqual([again.status, again.json], [200, ended])
  })

  test('of what has ended answers with the end', async () => {
    const failed = await client.run({ '1': node('FakeFail') })
    assert.deepEqual((await client.cancel(failed.id)).json, failed)
  })

  test('needs no body and no Content-Type, and takes any', async () => {
    const { id } = await client.run({ '1': node('FakeSource') })
    const path = `/api/v2/jobs/${id}/cancel`
    const start = `POST ${path} HTTP/1.1\r\nHost: ${new URL(client.url).host}\r\nConnection: close\r\n`
    for (const rest of ['\r\n', 'Content-Length: 0\r\n\r\n', 'Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n']) {
      const answer = await sendRaw({ url: client.url, bytes: start + rest, halfClose: false })
      assert.equal(answer?.status, 200, rest)
    }
    for (const body of ['{}', 'null', 'nonsense', '{"reason":"x"}']) {
      for (const type of ['application/json', 'text/plain', 'multipart/form-data']) {
        const answer = await client.call(path, { method: 'POST', headers: { 'content-type': type }, body })
        assert.equal(answer.status, 200)
      }
    }
  })

  test('of an unknown job is 404', async () => {
    refused(await client.cancel('0199b3f4-1d2e-7a3b-8c4d-5e6f70819234'), 404, 'not_found')
  })

  test('ends the streams of the job with its end', async () => {
    const { id } = await client.accepted({ '1': node('FakeHang') })
    await client.untilStatus(id, 'running')
    const watching = client.events(id)
    await client.cancel(id)
    const statuses = (await watching).filter(({ event }) => event === 'status').map(({ data }) => data.status)
    assert.equal(statuses.at(-1), 'canceled')
    assert.ok(['running', 'canceling', 'canceled'].includes(statuses[0]))
  })
})

test('a canceled job stays canceled over a restart, a canceling one becomes canceled', async () => {
  const engine = createFakeEngine({ ignoreAbort: true })
  const first = await startTestApp({ settings: { workers: '1', drainTimeout: '0s' }, overrides: { engine } })
  const before = new CheckedClient(first.url)
  const running = await before.accepted({ '1': node('FakeHang') })
  await before.untilStatus(running.id, 'running')
  const queued = await before.accepted({ '1': node('FakeSave') })
  assert.equal((await before.cancel(queued.id)).json.status, 'canceled')
  assert.equal((await before.cancel(running.id)).json.status, 'canceling')
  engine.release()
  await using second = await first.restart()
  const client = new CheckedClient(second.url)
  assert.equal((await client.job(queued.id)).status, 'canceled')
  await client.untilStatus(running.id, 'canceled')
})
