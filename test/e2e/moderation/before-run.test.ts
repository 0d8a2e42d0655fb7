/** A hook that is asked before a run begins, with a real receiver on loopback. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { call } from '../../support/clients/call.ts'
import { card, stamp } from '../../support/endpoints/card.ts'
import { ALLOW, type Asked, type Moderator, startModerator } from '../../support/moderator.ts'

const DECLARATION = {
  only: true,
  inputs: { headline: { from: '2.text', max_length: 20, required: true }, width: { from: '1.width', maximum: 512 } },
}
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

describe('a hook before runs', () => {
  let moderator: Moderator
  let service: TestApp
  before(async () => {
    moderator = await startModerator()
    // Longer than a busy machine takes for an answer.
    const moderation = await moderator.setting({ before_run: { deadline: '60s', at_once: 8 } })
    service = await startTestApp({ settings: { workers: '2', moderation, maxQueued: '100' } })
    await send('', { name: 'card', file: card('Hello'), declaration: DECLARATION })
    await send('', { name: 'invert', file: stamp() })
  })
  after(async () => {
    await service[Symbol.asyncDispose]()
    await moderator[Symbol.asyncDispose]()
  })
  beforeEach(() => {
    moderator.decide = () => ALLOW
  })

  const send = (path: string, body: object, headers: Record<string, string> = {}) =>
    call(service.url, `/api/v2/endpoints${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  const run = (inputs: object, more: object = {}) => send('/card/runs', { inputs, ...more }, { prefer: 'wait=60' })
  const countJobs = async () => (await call(service.url, '/api/v2/jobs')).json.jobs.length
  const lastAsked = () => moderator.asked.at(-1) as Asked

  test('is told who calls what with which inputs, in a message that it can verify', async () => {
    const answer = await run({ headline: 'Good morning', width: 128 }, { metadata: { user: 'ann' } })
    assert.equal(answer.status, 200, answer.text)
    const { type, fault, data, id } = lastAsked()
    assert.deepEqual([type, fault], ['before_run', null])
    assert.match(id, /^run_/)
    assert.deepEqual(data, {
      ...{ account: 'local', key_id: null, metadata: { user: 'ann' } },
      endpoint: { name: 'card', version: 1 },
      inputs: { headline: 'Good morning', width: 128 },
    })
  })

  test('that refuses is heard with its own words, and nothing is recorded', async () => {
    const jobs = await countJobs()
    moderator.decide = () => ({ decision: 'refuse', message: 'no mornings\u0007here' })
    const answer = await run({ headline: 'Good morning' })
    assert.equal(answer.status, 403, answer.text)
    assert.deepEqual(answer.json.error, { code: 'refused_by_policy', message: 'no mornings here', details: null })
    assert.equal(await countJobs(), jobs)
  })

  test('that changes inputs changes what runs, and the run tells what was used', async () => {
    moderator.decide = () => ({ decision: 'change', inputs: { headline: 'Good night' } })
    const { json } = await run({ headline: 'Good morning', width: 96 })
    assert.deepEqual(json.inputs, { headline: 'Good night', width: 96 })
    const { json: workflow } = await call(service.url, `/api/v2/jobs/${json.id}/workflow`)
    assert.equal((workflow.workflow ?? workflow)['2'].inputs.text, 'Good night')
  })

  test('that gives inputs which do not fit has failed, and failed means refused', async () => {
    for (const inputs of [{ headline: 'x'.repeat(21) }, { nothing: 1 }, { width: 'wide' }, 'text']) {
      moderator.decide = () => ({ decision: 'change', inputs })
      const answer = await run({ headline: 'x' })
      assert.deepEqual([answer.status, answer.json.error.code], [503, 'check_unavailable'], JSON.stringify(inputs))
      assert.equal(answer.headers['retry-after'], '5')
    }
  })

  const broken: Record<string, unknown> = {
    'answers no JSON': '<html>',
    'answers an unknown word': { decision: 'maybe' },
    'answers a list': [ALLOW],
    'answers more than 64 KB': { decision: 'allow', filler: 'x'.repeat(66_000) },
    redirects: 307,
    'is out of order': 500,
    'cuts the connection': 'drop',
  }
  for (const [does, decision] of Object.entries(broken)) {
    test(`that ${does} lets nothing through`, async () => {
      const [jobs, asked] = [await countJobs(), moderator.asked.length]
      moderator.decide = () => decision as object
      const answer = await run({ headline: 'x' })
      assert.deepEqual([answer.status, answer.json.error.code], [503, 'check_unavailable'], answer.text)
      assert.equal(await countJobs(), jobs)
      const ids = moderator.asked.slice(asked).map(({ id }) => id)
      // Only a connection that broke is tried again, as the same question.
      assert.equal(ids.length, decision === 'drop' ? 2 : 1)
      assert.equal(new Set(ids).size, 1)
    })
  }

  test('that never answers lets nothing through', async () => {
    const moderation = await moderator.setting({ before_run: { deadline: '500ms' } })
    await using hasty = await startTestApp({ settings: { moderation } })
    moderator.decide = () => 'hang'
    const post = (path: string, body: object) =>
      call(hasty.url, `/api/v2/endpoints${path}`, { method: 'POST', body: JSON.stringify(body) })
    await post('', { name: 'card', file: card('Hello'), declaration: DECLARATION })
    const answer = await post('/card/runs', { inputs: { headline: 'x' } })
    assert.deepEqual([answer.status, answer.json.error.code], [503, 'check_unavailable'], answer.text)
    assert.deepEqual((await call(hasty.url, '/api/v2/jobs')).json.jobs, [])
  })

  test('that cuts one connection is asked once more', async () => {
    let isFirst = true
    moderator.decide = () => {
      const decision = isFirst ? 'drop' : ALLOW
      isFirst = false
      return decision
    }
    assert.equal((await run({ headline: 'x' })).status, 200)
  })

  test('reads files by an address that is good without a key, and with nothing changed in it', async () => {
    const image = `data:image/png;base64,${PNG.toString('base64')}`
    let read: Buffer | null = null
    moderator.decide = async ({ data }) => {
      read = Buffer.from(await (await fetch(data.inputs.image.url)).arrayBuffer())
      return ALLOW
    }
    const answer = await send('/invert/runs', { inputs: { image } }, { prefer: 'wait=60' })
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual(read, PNG)
    const { url, ...file } = lastAsked().data.inputs.image
    assert.deepEqual([file.type, file.content_type, file.size_bytes], ['file', 'image/png', PNG.length])
    const [path, token] = url.split('/content/checked?')
    const [payload, signature] = token.split('.')
    const forged = Buffer.from(payload, 'base64url').toString().replace('image/png', 'image/gif')
    for (const other of [`${Buffer.from(forged).toString('base64url')}.${signature}`, payload, `${payload}.x`, 'x.y.z'])
      assert.equal((await fetch(`${path}/content/checked?${other}`)).status, 403)
  })

  test('is asked about each item of a batch, and a refusal names the item', async () => {
    moderator.decide = ({ data }) =>
      data.inputs.headline === 'bad' ? { decision: 'refuse', message: 'not this' } : ALLOW
    const items = ['a', 'b', 'bad', 'c'].map((headline) => ({ headline }))
    const jobs = await countJobs()
    const answer = await send('/card/runs/batch', { items })
    assert.equal(answer.status, 422, answer.text)
    assert.match(answer.text, /"index":2/)
    assert.match(answer.text, /refused_by_policy.*not this|not this.*refused_by_policy/)
    // That the hook fails is no fault of an item: the batch comes again as a whole.
    moderator.decide = ({ data }) => (data.inputs.headline === 'bad' ? 500 : ALLOW)
    const failed = await send('/card/runs/batch', { items })
    assert.deepEqual([failed.status, failed.json.error.code], [503, 'check_unavailable'], failed.text)
    assert.equal(await countJobs(), jobs)
  })

  test('that takes its time holds up as many calls as it may, and every other one is refused at once', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    moderator.decide = async () => {
      await released
      return ALLOW
    }
    let refused = 0
    const statuses = await Promise.all(
      Array.from({ length: 50 }, async () => {
        const { status } = await run({ headline: 'x' })
        // Those that were not refused are answered when all others were.
        if (status === 503 && ++refused === 42) release()
        return status
      }),
    )
    assert.deepEqual([statuses.filter((status) => status === 200).length, refused], [8, 42])
    assert.equal(moderator.mostOpen, 8)
  })

  test('is not asked about graphs that are submitted as such', async () => {
    const asked = moderator.asked.length
    const answer = await call(service.url, '/api/v2/jobs', {
      method: 'POST',
      body: JSON.stringify({ workflow: card('x') }),
    })
    assert.equal(answer.status, 201, answer.text)
    assert.equal(moderator.asked.length, asked)
  })

  test('that fails lets calls through where its rule says so; a refusal counts all the same', async () => {
    const moderation = await moderator.setting({ before_run: { on_failure: 'allow', deadline: '5s' }, scope: 'all' })
    await using lenient = await startTestApp({ settings: { moderation } })
    const submit = () =>
      call(lenient.url, '/api/v2/jobs', { method: 'POST', body: JSON.stringify({ workflow: card('plain') }) })
    moderator.decide = () => 'hang'
    assert.equal((await submit()).status, 201)
    moderator.decide = () => ({ decision: 'refuse', message: 42 })
    const refused = await submit()
    assert.deepEqual([refused.status, refused.json.error.code], [403, 'refused_by_policy'])
    const { data } = lastAsked()
    assert.deepEqual([data.endpoint, data.workflow['2'].inputs.text], [null, 'plain'])
    const prompt = await call(lenient.url, '/api/prompt', {
      method: 'POST',
      body: JSON.stringify({ prompt: card('v1') }),
    })
    assert.equal(prompt.status, 403, prompt.text)
    const { text } = await call(lenient.url, '/metrics')
    assert.match(text, /atelier_moderation_total\{hook="before_run",outcome="refused"\} 2/)
    assert.match(text, /atelier_moderation_total\{hook="before_run",outcome="failed"\} 1/)
  })
})
