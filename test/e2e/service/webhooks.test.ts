import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { textWorkflow } from '../../../bench/kit/workflows.ts'
import { publicInternet } from '../../../lib/outbound/network.ts'
import { openHttpSender } from '../../../src/adapters/webhooks/http-sender.ts'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { checkAgainstSchema } from '../../support/clients/check-against-spec.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../../support/webhook-receiver.ts'

const SETTINGS = {
  webhookPrivateNetwork: 'true',
  sandboxModels: 'on',
}

describe('webhooks', () => {
  let app: TestApp
  let receiver: WebhookReceiver

  before(async () => {
    receiver = await startWebhookReceiver()
    app = await startTestApp({ settings: SETTINGS, patch: { webhooks: { firstRetryMs: 20 } } })
  })
  after(async () => {
    await app[Symbol.asyncDispose]()
    await receiver[Symbol.asyncDispose]()
  })

  // biome-ignore lint/suspicious/noExplicitAny: answers of the service, whose shape the contract tests know
  async function call(path: string, method = 'GET', body?: object): Promise<{ status: number; json: any }> {
    const init =
      body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
    const response = await fetch(`${app.url}${path}`, { method, ...init })
    const text = await response.text()
    return { status: response.status, json: text === '' ? null : JSON.parse(text) }
  }

  async function add(path: string, fields: object = {}) {
    const { status, json } = await call('/api/v2/webhooks', 'POST', { url: `${receiver.url}${path}`, ...fields })
    assert.equal(status, 201, JSON.stringify(json))
    receiver.expect(path, json.secret)
    return json
  }

  const came = (path: string, count: number) =>
    waitUntil(() => {
      const here = receiver.received.filter((each) => each.path === path && each.isTaken)
      return here.length >= count ? here : null
    })

  async function submit(fields: object = {}): Promise<string> {
    const { status, json } = await call('/api/v2/jobs', 'POST', { workflow: textWorkflow(Math.random()), ...fields })
    assert.equal(status, 201, JSON.stringify(json))
    return json.id
  }

  test('tell the end of a job, signed as the official library wants it, and show what came of it', async () => {
    const { id, secret, ...webhook } = await add('/failing/ends', { description: 'mine' })
    assert.match(secret, /^whsec_/)
    assert.deepEqual([webhook.status, webhook.events.length, webhook.credits_low_usd], ['enabled', 7, 5])
    assert.equal('secret' in (await call(`/api/v2/webhooks/${id}`)).json, false)
    const jobId = await submit({ metadata: { order: '7' } })
    const [message] = await came('/failing/ends', 1)
    assert.deepEqual([message.type, message.fault], ['job.succeeded', null])
    checkAgainstSchema('WebhookJobData', message.data)
    const { job_id, status, metadata, error } = message.data
    assert.deepEqual(
      { job_id, status, metadata, error },
      { job_id: jobId, status: 'succeeded', metadata: { order: '7' }, error: null },
    )
    const delivery = await waitUntil(async () => {
      const { json } = await call(`/api/v2/webhooks/deliveries/${message.id}`)
      return json.status === 'delivered' ? json : null
    })
    assert.deepEqual(
      // biome-ignore lint/suspicious/noExplicitAny: as above
      delivery.attempt_list.map((attempt: any) => [attempt.outcome, attempt.http_status, attempt.response]),
      [
        ['refused', 500, 'down for a moment'],
        ['delivered', 200, 'taken'],
      ],
    )
    const { json } = await call(`/api/v2/webhooks/deliveries?job_id=${jobId}&status=delivered`)
    assert.deepEqual([json.deliveries.length, json.next], [1, null])
    assert.equal((await call(`/api/v2/webhooks/deliveries/${message.id}/replay`, 'POST')).status, 202)
    await came('/failing/ends', 2)
    const hour = 3_600_000
    const range = { from: new Date(Date.now() - hour), to: new Date(Date.now() + hour), only_failed: false }
    await waitUntil(async () => {
      const replayed = await call(`/api/v2/webhooks/${id}/replay`, 'POST', range)
      return replayed.json.replayed === 1 ? true : null
    })
    await came('/failing/ends', 3)
    assert.equal(
      new Set(receiver.received.filter(({ path }) => path === '/failing/ends').map((each) => each.id)).size,
      1,
    )
    assert.equal((await call(`/api/v2/webhooks/${id}`, 'DELETE')).status, 204)
    assert.equal((await call(`/api/v2/webhooks/${id}`)).status, 404)
  })

  test('sign with both secrets while one replaces the other, and can be tried out and paused', async () => {
    const { id, secret } = await add('/ok/rotated', { events: ['job.failed'] })
    const rotated = await call(`/api/v2/webhooks/${id}/rotate`, 'POST', { overlap_seconds: 60 })
    assert.notEqual(rotated.json.secret, secret)
    receiver.expect('/ok/rotated', secret, rotated.json.secret)
    assert.equal((await call(`/api/v2/webhooks/${id}/test`, 'POST')).status, 202)
    const [message] = await came('/ok/rotated', 1)
    assert.deepEqual([message.type, message.fault, message.data], ['webhook.test', null, { webhook_id: id }])
    await call(`/api/v2/webhooks/${id}/rotate`, 'POST', { overlap_seconds: 0 })
    const paused = await call(`/api/v2/webhooks/${id}`, 'PATCH', { status: 'paused' })
    assert.deepEqual([paused.json.status, paused.json.secret_overlap_until], ['paused', null])
    assert.equal((await call(`/api/v2/webhooks/${id}/test`, 'POST')).status, 422)
    await call(`/api/v2/webhooks/${id}`, 'DELETE')
  })

  test('that a job or a queued call brings along are told of it alone', async () => {
    const secret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`
    receiver.expect('/ok/own', secret)
    const events = ['job.queued', 'job.started', 'job.succeeded']
    const jobId = await submit({ webhook: { url: `${receiver.url}/ok/own`, secret, events } })
    const messages = await came('/ok/own', 3)
    assert.deepEqual(
      messages.map(({ type, fault, data }) => [type, fault, data['job_id']]),
      events.map((type) => [type, null, jobId]),
    )
    receiver.expect('/ok/common', (await call('/api/v2/webhooks/secret')).json.secret)
    await submit({ webhook: `${receiver.url}/ok/common` })
    const address = encodeURIComponent(`${receiver.url}/ok/common`)
    const queued = await call(`/v2/models/sandbox/echo/requests?webhook=${address}`, 'POST', { prompt: 'hello' })
    assert.equal(queued.status, 201, JSON.stringify(queued.json))
    const both = await came('/ok/common', 2)
    const completed = both.find(({ type }) => type === 'model_call.completed')
    checkAgainstSchema('WebhookCallData', completed?.data)
    assert.deepEqual([completed?.data['request_id'], completed?.data['status']], [queued.json.request_id, 'succeeded'])
    assert.ok(both.every(({ fault }) => fault === null))
  })

  test('that answer 410 are disabled, and others can be told of that', async () => {
    await add('/ok/notices', { events: ['webhook.disabled'] })
    const { id } = await add('/gone/away')
    await submit()
    const [notice] = await came('/ok/notices', 1)
    assert.deepEqual(notice.data, { webhook_id: id, reason: 'gone' })
    const { json } = await call(`/api/v2/webhooks/${id}`)
    assert.deepEqual([json.status, json.disabled_reason], ['disabled', 'gone'])
  })

  test('are refused with the field at fault', async () => {
    const cases: readonly (readonly [object, RegExp])[] = [
      [{}, /url/],
      [{ url: 'nowhere' }, /url must be an address/],
      [{ url: 'ftp://example.com' }, /only https/],
      [{ url: 'http://user:pw@127.0.0.1/' }, /user name/],
      [{ url: `${receiver.url}/`, events: ['job.gone'] }, /must be one of/],
      [{ url: `${receiver.url}/`, secret: 'whsec_short' }, /24 to 64 bytes/],
      [{ url: `${receiver.url}/`, color: 'red' }, /not allowed/],
    ]
    for (const [body, problem] of cases) {
      const { status, json } = await call('/api/v2/webhooks', 'POST', body)
      assert.equal(status, 422, JSON.stringify(json))
      assert.match(json.error.message, problem)
    }
    const { status } = await call('/api/v2/jobs', 'POST', { workflow: textWorkflow(1), webhook: 'nowhere' })
    assert.equal(status, 422)
  })

  test('reach no private address unless the operator allows it, and tell nothing of names that only the service can resolve', async () => {
    const asked: string[] = []
    const resolve = async (name: string) => {
      asked.push(name)
      if (name === 'intern.example') return [{ address: '10.0.0.7', family: 4 }]
      throw Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: 'ENOTFOUND' })
    }
    await using sender = openHttpSender({ network: { ...publicInternet, resolve }, timeoutMs: 500, version: 'test' })
    for (const url of ['https://127.0.0.1/', 'https://[::1]/', 'https://169.254.169.254/', 'http://example.com/'])
      assert.match(sender.refusalOf(url) ?? '', /refused/)
    // By their text alone: neither the answer nor its time depends on what a name leads to.
    for (const url of ['https://intern.example/', 'https://nobody.example/']) assert.equal(sender.refusalOf(url), null)
    assert.deepEqual(asked, [])
    const message = { id: 'msg_1', type: 'webhook.test', subject: 'x', at: new Date(), facts: '{}' } as const
    const request = {
      message,
      body: null,
      secrets: [new Uint8Array(24)],
      at: new Date(),
      signal: new AbortController().signal,
    }
    for (const url of ['https://127.0.0.1/', 'https://intern.example/', receiver.url]) {
      const answer = await sender.send({ ...request, endpoint: { url, kind: 'account' } })
      assert.equal(answer.outcome, 'blocked')
    }
    const known = await sender.send({ ...request, endpoint: { url: 'https://intern.example/', kind: 'account' } })
    const unknown = await sender.send({ ...request, endpoint: { url: 'https://nobody.example/', kind: 'account' } })
    assert.deepEqual(unknown, { ...known, response: known.response?.replace('intern', 'nobody') })
  })
})
