/** Idempotency keys through the whole service: single use, atomic, kept for a day, and free again after every refusal. */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { CheckedClient, node, refused } from '../../support/clients/checked-client.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'

const HOUR_MS = 3_600_000
const WORKFLOW = { '1': node('FakeSource') }
const key = (value: string) => ({ 'idempotency-key': value })

describe('a key', () => {
  let service: TestApp
  let client: CheckedClient
  let aheadMs = 0
  const engine = createFakeEngine()
  before(async () => {
    const clock = { now: () => new Date(Date.now() + aheadMs) }
    service = await startTestApp({ settings: { maxUpload: '1000B' }, overrides: { engine, clock } })
    client = new CheckedClient(service.url)
  })
  after(() => service[Symbol.asyncDispose]())

  const submit = (value: string, body: object = { workflow: WORKFLOW }) => client.submit(body, key(value))
  const isFree = async (value: string) => assert.equal((await submit(value)).status, 201, `the key ${value} is taken`)

  test('is taken by its job, whatever the second request asks for; another key is free', async () => {
    const first = await submit('first')
    assert.equal(first.status, 201)
    const seconds = [
      { workflow: WORKFLOW },
      { workflow: { '1': node('FakeSave') }, priority: 5, metadata: { other: 'yes' } },
      { workflow: WORKFLOW, extra_data: { api_key_comfy_org: 'another credential' } },
      { workflow: WORKFLOW, extra_data: { auth_token_service_org: 'and another' } },
    ]
    for (const body of seconds) {
      assert.deepEqual(refused(await submit('first', body), 422, 'idempotency_key_reuse'), { job_id: first.json.id })
    }
    assert.equal((await submit('second')).status, 201)
    assert.equal((await submit('FIRST')).status, 201)
  })

  test('that was used by an upload names its asset, also to a submit', async () => {
    const asset = await client.uploaded('k.png', 'bytes', { headers: key('upload') })
    const holder = { asset_id: asset.id }
    assert.deepEqual(refused(await submit('upload'), 422, 'idempotency_key_reuse'), holder)
    const again = await client.upload('k.png', 'bytes', { headers: key('upload') })
    assert.deepEqual(refused(again, 422, 'idempotency_key_reuse'), holder)
    const job = await submit('submit')
    const late = await client.upload('l.png', 'other', { headers: key('submit') })
    assert.deepEqual(refused(late, 422, 'idempotency_key_reuse'), { job_id: job.json.id })
    assert.equal((await client.call('/api/v2/assets/from-hash', json({ hash: asset.hash }))).status, 201)
  })

  test('of another account is another key', async () => {
    const now = new Date()
    const { store } = service.app
    await store.accounts.put({ id: 'somebody', maxRunning: 1, maxQueued: 10 })
    const asset = { id: crypto.randomUUID(), accountId: 'somebody', hash: 'a'.repeat(64), sizeBytes: 1 }
    const outcome = await store.assets.mint({
      asset: {
        ...asset,
        contentType: 'text/plain',
        filePath: null,
        tags: [],
        createdAt: now,
        expiresAt: null,
        jobId: null,
      },
      keyClaim: { key: 'theirs', claimedAt: now, expiresAt: new Date(now.getTime() + 24 * HOUR_MS) },
      mustOwnHash: false,
    })
    assert.equal(outcome.outcome, 'minted')
    await isFree('theirs')
  })

  test('is free after every refusal', async () => {
    const refusals: [unknown, number][] = [
      ['{', 400],
      [{ workflow: WORKFLOW, extra_data: { unknown: 1 } }, 400],
      [{ workflow: WORKFLOW, priority: 'high' }, 422],
      [{ workflow: WORKFLOW, metadata: { k: 5 } }, 422],
      [{ workflow: WORKFLOW, webhook_url: 'x' }, 422],
      [{ workflow: { nodes: [], links: [] } }, 422],
      [{ workflow: { '1': node('Nope') } }, 422],
      [{ workflow: { '1': node('FakeSource', { x: { __type: 'core/ASSET' } }) } }, 422],
      [{}, 422],
    ]
    for (const [index, [body, status]] of refusals.entries()) {
      assert.equal((await client.submit(body, key(`refused-${index}`))).status, status)
      await isFree(`refused-${index}`)
    }
  })

  test('is free after a refused upload', async () => {
    const refusals = [
      () =>
        client.upload('a.png', 'x', { headers: key('up-0'), fields: { expected_hash: `blake3:${'0'.repeat(64)}` } }),
      () => client.upload('../a.png', 'x', { headers: key('up-1') }),
      () => client.upload('a.png', 'x', { headers: key('up-2'), fields: { expires_in: '59' } }),
      () => client.upload('a.png', 'x'.repeat(1001), { headers: key('up-3') }),
      () => client.call('/api/v2/assets', { method: 'POST', headers: key('up-4'), body: 'no form' }),
    ]
    for (const [index, refuse] of refusals.entries()) {
      assert.ok((await refuse()).status >= 400)
      await isFree(`up-${index}`)
    }
  })

  test('is free after an upload that broke off', async () => {
    const { port, hostname } = new URL(service.url)
    const socket = connect(Number(port), hostname)
    const fields = ['content_type', 'file_path'].map(
      (name) => `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\ntext/plain\r\n`,
    )
    const file = '--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\nhalf a fi'
    const head = `POST /api/v2/assets HTTP/1.1\r\nHost: ${hostname}:${port}\r\nIdempotency-Key: broken\r\n`
    const type = 'Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 900\r\n\r\n'
    await new Promise<void>((resolve) => socket.write(head + type + fields.join('') + file, () => resolve()))
    socket.destroy()
    await isFree('broken')
  })

  test('of 1 and of 255 characters is one; without any character, longer, or sent twice it is 400', async () => {
    await isFree('k')
    await isFree('k'.repeat(255))
    for (const value of ['', ' ', 'k'.repeat(256)]) {
      refused(await submit(value), 400, 'invalid_request')
      refused(await client.upload('a.png', 'x', { headers: key(value) }), 400, 'invalid_request')
    }
  })

  test('is given to exactly one of many requests at once', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => submit('race')))
    const taken = answers.filter(({ status }) => status === 201)
    assert.equal(taken.length, 1)
    for (const answer of answers) {
      if (answer.status === 201) continue
      assert.deepEqual(refused(answer, 422, 'idempotency_key_reuse'), { job_id: taken[0].json.id })
    }
  })

  test('is kept for 24 hours and then free', async () => {
    assert.equal((await submit('day')).status, 201)
    aheadMs += 24 * HOUR_MS - 60_000
    refused(await submit('day'), 422, 'idempotency_key_reuse')
    aheadMs += 60_000
    await isFree('day')
    refused(await submit('day'), 422, 'idempotency_key_reuse')
  })
})

test('a full queue is 429 with Retry-After, and the same key is accepted once there is room', async () => {
  const engine = createFakeEngine()
  await using service = await startTestApp({ settings: { workers: '1', maxQueue: '1' }, overrides: { engine } })
  const client = new CheckedClient(service.url)
  await client.accepted({ '1': node('FakeGate') })
  await engine.untilRuns(1)
  const { id } = await client.accepted(WORKFLOW)
  for (let attempt = 0; attempt < 3; attempt++) {
    refused(await client.submit({ workflow: WORKFLOW }, key('again')), 429, 'queue_full')
  }
  assert.equal((await client.cancel(id)).json.status, 'canceled')
  assert.equal((await client.submit({ workflow: WORKFLOW }, key('again'))).status, 201)
  engine.openGate()
})

test('a client that hung up before its answer finds either its job or a free key, never two jobs', async () => {
  await using service = await startTestApp({ settings: { workers: '0' }, overrides: { engine: createFakeEngine() } })
  const client = new CheckedClient(service.url)
  const { port, hostname } = new URL(service.url)
  for (let round = 0; round < 10; round++) {
    const metadata = { round: String(round) }
    const body = JSON.stringify({ workflow: WORKFLOW, metadata })
    const socket = connect(Number(port), hostname)
    const head = `POST /api/v2/jobs HTTP/1.1\r\nHost: ${hostname}:${port}\r\nIdempotency-Key: gone-${round}\r\n`
    const sent = `${head}Content-Length: ${body.length}\r\n\r\n${body}`
    await new Promise<void>((resolve) => socket.write(sent, () => resolve()))
    socket.destroy()
    const again = await client.submit({ workflow: WORKFLOW, metadata }, key(`gone-${round}`))
    const { jobs } = (await client.call(`/api/v2/jobs?metadata[round]=${round}`)).json
    assert.equal(jobs.length, 1)
    if (again.status === 201) assert.equal(again.json.id, jobs[0].id)
    else assert.deepEqual(refused(again, 422, 'idempotency_key_reuse'), { job_id: jobs[0].id })
  }
})

test('a key survives a restart, for jobs and for assets', async () => {
  const first = await startTestApp({ settings: { workers: '0' }, overrides: { engine: createFakeEngine() } })
  const before = new CheckedClient(first.url)
  const workflow = WORKFLOW
  const job = await before.submit({ workflow }, key('job'))
  const asset = await before.uploaded('a.png', 'bytes', { headers: key('asset') })
  await using second = await first.restart()
  const client = new CheckedClient(second.url)
  assert.deepEqual(refused(await client.submit({ workflow }, key('job')), 422, 'idempotency_key_reuse'), {
    job_id: job.json.id,
  })
  assert.deepEqual(refused(await client.submit({ workflow }, key('asset')), 422, 'idempotency_key_reuse'), {
    asset_id: asset.id,
  })
})

function json(body: object) {
  return { method: 'POST', body: JSON.stringify(body) }
}
