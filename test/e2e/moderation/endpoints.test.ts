/** Calls of an endpoint whose outputs a hook has to let through: over every door, again from an earlier result, and many at once. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import OpenAI from 'openai'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { call } from '../../support/clients/call.ts'
import { card } from '../../support/endpoints/card.ts'
import { ALLOW, type Moderator, startModerator } from '../../support/moderator.ts'
import { waitUntil } from '../../support/wait-until.ts'

const DECLARATION = { only: true, inputs: { prompt: { from: '2.text', max_length: 20 } } }
const REFUSE = { decision: 'refuse', message: 'not for handing out' }

describe('a call of an endpoint', () => {
  let moderator: Moderator
  let service: TestApp
  before(async () => {
    moderator = await startModerator()
    const moderation = await moderator.setting({ before_run: {}, before_outputs: { at_once: 8 } })
    service = await startTestApp({ settings: { workers: '4', moderation } })
    const body = JSON.stringify({ name: 'card', file: card('Hello'), declaration: DECLARATION })
    await call(service.url, '/api/v2/endpoints', { method: 'POST', body })
  })
  after(async () => {
    await service[Symbol.asyncDispose]()
    await moderator[Symbol.asyncDispose]()
  })
  beforeEach(() => {
    moderator.decide = () => ALLOW
  })

  const onlyOutputs = (decision: object) => {
    moderator.decide = ({ type }) => (type === 'before_outputs' ? decision : ALLOW)
  }
  const run = (url: string, prompt: string, more: object = {}) =>
    call(url, '/api/v2/endpoints/card/runs', {
      method: 'POST',
      headers: { prefer: 'wait=60' },
      body: JSON.stringify({ inputs: { prompt }, ...more }),
    })
  const countAsked = (kind: string) => moderator.asked.filter(({ type }) => type === kind).length

  test('is named in the question about its outputs, and a refusal ends its run', async () => {
    onlyOutputs(REFUSE)
    const { json } = await run(service.url, 'one')
    assert.deepEqual([json.status, json.error.code, json.results], ['failed', 'refused_by_policy', { image: [] }])
    assert.deepEqual(moderator.asked.at(-1)?.data.endpoint, { name: 'card', version: 1 })
  })

  test('is a violation of the content policy to an image client, before its run and after it', async () => {
    const client = new OpenAI({ baseURL: `${service.url}/v1`, apiKey: 'none', maxRetries: 0 })
    const asked = () => client.images.generate({ model: 'card', prompt: 'two' })
    const seen = async () =>
      asked().then(
        () => 'answered',
        ({ status, code, message }) => [status, code, /not for handing out/.test(message)],
      )
    onlyOutputs(REFUSE)
    assert.deepEqual(await seen(), [400, 'content_policy_violation', true])
    moderator.decide = () => REFUSE
    assert.deepEqual(await seen(), [400, 'content_policy_violation', true])
    moderator.decide = () => 500
    assert.equal((await seen())[0], 503)
  })

  test('is a refusal to a client of Replicate before its run, and a failed prediction after it', async () => {
    const predict = () =>
      call(service.url, '/replicate/v1/models/local/card/predictions', {
        method: 'POST',
        headers: { prefer: 'wait=60' },
        body: '{"input":{"prompt":"three"}}',
      })
    onlyOutputs(REFUSE)
    const { json } = await predict()
    assert.deepEqual([json.status, json.output], ['failed', null])
    assert.match(json.error, /not for handing out/)
    moderator.decide = () => REFUSE
    const refused = await predict()
    assert.equal(refused.status, 403, refused.text)
    assert.match(refused.json.detail, /not for handing out/)
  })

  test('comes through a link to its page and is asked about all the same, and the visitor reads what the hook says', async () => {
    const bounds = JSON.stringify({ runs: 5, expires_at: new Date(Date.now() + 3_600_000).toISOString() })
    const made = await call(service.url, '/api/v2/endpoints/card/shares', { method: 'POST', body: bounds })
    assert.equal(made.status, 201, made.text)
    const runs = `${new URL(made.json.url).pathname}/runs`
    const visit = (prompt: string) =>
      call(service.url, runs, { method: 'POST', body: JSON.stringify({ inputs: { prompt } }) })
    const untilEnd = (token: string) =>
      waitUntil(async () => {
        const { json } = await call(service.url, `${runs}/${token}`)
        return json.completed_at === null ? null : json
      })
    moderator.decide = () => REFUSE
    const refused = await visit('bad')
    assert.deepEqual([refused.status, refused.json.error.code], [403, 'refused_by_policy'])
    assert.match(refused.json.error.message, /not for handing out/)
    const { data } = moderator.asked.at(-1)!
    assert.deepEqual([data.endpoint, data['inputs']], [{ name: 'card', version: 1 }, { prompt: 'bad' }])

    onlyOutputs(REFUSE)
    const withheld = await untilEnd((await visit('hidden')).json.run)
    assert.deepEqual([withheld.status, withheld.outputs, withheld.error.code], ['failed', [], 'refused_by_policy'])
    assert.match(withheld.error.message, /not for handing out/)

    moderator.decide = ({ type }) =>
      type === 'before_run' ? { decision: 'change', inputs: { prompt: 'kind' } } : ALLOW
    const before = countAsked('before_outputs')
    const changed = await untilEnd((await visit('rude')).json.run)
    assert.deepEqual([changed.status, changed.inputs.prompt, changed.outputs.length], ['succeeded', 'kind', 1])
    assert.equal(countAsked('before_outputs'), before + 1)
  })

  test('is answered with an earlier result only if that was let through by the same hook', async () => {
    const again = (url: string) => run(url, 'again', { reuse: 'exact' })
    const first = await again(service.url)
    const before = countAsked('before_outputs')
    const second = await again(service.url)
    assert.equal(second.json.reused_from, first.json.id)
    assert.equal(countAsked('before_outputs'), before)
    const moderation = await moderator.setting({ before_outputs: { url: `${moderator.url}/stricter` } })
    await service.app[Symbol.asyncDispose]()
    service = await startTestApp({ settings: { workers: '4', moderation }, dataDir: service.dataDir })
    moderator.decide = () => REFUSE
    const third = await again(service.url)
    assert.deepEqual([third.json.status, third.json.reused_from], ['failed', undefined])
    assert.equal(countAsked('before_outputs'), before + 1)
  })

  test('of the service is not run around the hooks as a model of the router, and is run as an endpoint', async () => {
    const body = JSON.stringify({ text: 'Hello', width: 64, height: 32 })
    const direct = await call(service.url, '/v2/models/local/text-card', { method: 'POST', body })
    assert.equal(direct.status, 403, direct.text)
    assert.match(direct.text, /checked by the operator's hooks/)
    const queued = await call(service.url, '/v2/models/local/text-card/requests', { method: 'POST', body })
    assert.equal(queued.status, 403, queued.text)
    const listed = await call(service.url, '/v2/models/local/text-card')
    assert.equal(listed.status, 200, listed.text)
    const before = countAsked('before_outputs')
    const asEndpoint = await call(service.url, '/api/v2/endpoints/text-card/runs', {
      method: 'POST',
      headers: { prefer: 'wait=60' },
      body: JSON.stringify({ inputs: { text: 'Hello', width: 64 } }),
    })
    assert.equal(asEndpoint.json.status, 'succeeded', asEndpoint.text)
    assert.equal(countAsked('before_outputs'), before + 1)
  })

  test('is one of fifty whose outputs wait for a place at the hook, and each gets its verdict', async () => {
    const moderation = await moderator.setting({ before_outputs: { at_once: 8 } })
    await service.app[Symbol.asyncDispose]()
    service = await startTestApp({ settings: { workers: '4', moderation }, dataDir: service.dataDir })
    const before = countAsked('before_outputs')
    const items = Array.from({ length: 50 }, (_, index) => ({ prompt: `n ${index}` }))
    const body = JSON.stringify({ items })
    const made = await call(service.url, '/api/v2/endpoints/card/runs/batch', { method: 'POST', body })
    assert.equal(made.status, 201, made.text)
    const last = await run(service.url, 'the last')
    assert.equal(last.json.status, 'succeeded')
    const ids: string[] = made.json.items.map(({ job_id: id }: { job_id: string }) => id)
    for (const id of ids) {
      const { status, outputs } = (await call(service.url, `/api/v2/jobs/${id}`)).json
      assert.deepEqual([status, outputs.length], ['succeeded', 1])
    }
    assert.equal(countAsked('before_outputs'), before + 51)
    assert.ok(moderator.mostOpen <= 8, String(moderator.mostOpen))
  })
})
