/** Prompts of the v1 API as jobs: submitted, queued, run, cancelled, looked up, and seen from the v2 API. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { startTestApp, type TestApp } from '../../../../test/support/app/start-app.ts'
import { node } from '../../../../test/support/clients/checked-client.ts'
import { LegacyClient } from '../../../../test/support/clients/legacy-client.ts'
import { failingGraph, saveGraph } from '../../../../test/support/clients/legacy-graphs.ts'
import { createFakeEngine } from '../../../../test/support/engines/fake-engine.ts'
import { ServiceError } from '../../../domain/errors.ts'

const SECRET = 'comfyui-sentinel-6d1f'

describe('a prompt', () => {
  let app: TestApp
  let client: LegacyClient
  before(async () => {
    app = await startTestApp()
    client = new LegacyClient(app.url)
  })
  after(() => app[Symbol.asyncDispose]())

  test('is a job of the v2 API, and a job of the v2 API is in the history', async () => {
    const id = await client.accepted(saveGraph(1))
    await client.untilHistory(id)
    const job = (await client.get(`/api/v2/jobs/${id}`)).json
    assert.equal(job.status, 'succeeded')
    assert.equal(job.outputs[0].node_id, '3')
    const other = (await client.post('/api/v2/jobs', { workflow: saveGraph(2) })).json
    const entry = await client.untilHistory(other.id)
    assert.deepEqual(entry.prompt.slice(0, 3), [0, other.id, JSON.parse(JSON.stringify(saveGraph(2)))])
    assert.deepEqual(entry.prompt[4], ['3'])
    assert.equal(entry.outputs['3'].images[0].type, 'output')
    assert.equal((await client.get(`/api/job/${other.id}/status`)).json.status, 'success')
  })

  test('is read whatever its content type, and a seed keeps every digit on its way', async () => {
    const seed = '18446744073709551615'
    const graph = `{"1":{"class_type":"PrimitiveString","inputs":{"value":"x","extra":${seed}}},"2":{"class_type":"PreviewAny","inputs":{"source":["1",0]}}}`
    for (const type of ['text/plain;charset=UTF-8', 'application/x-www-form-urlencoded', '']) {
      const body = `{"prompt":${graph}}`
      const answer = await client.call('/prompt', { method: 'POST', body, headers: { 'content-type': type } })
      assert.equal(answer.status, 200, answer.text)
      const id = answer.json.prompt_id
      await client.untilHistory(id)
      for (const where of [`/history/${id}`, `/api/jobs/${id}`, `/api/v2/jobs/${id}/workflow`]) {
        assert.ok((await client.get(where)).text.includes(seed), where)
      }
    }
  })

  test('gives back what came as _meta, digit by digit, on both APIs', async () => {
    const metas = [
      '{"title":"Näme","pos":[1.0,-0,1e-7,18446744073709551615],"odd":{"a":[null,true,""],"b":123456789.12345678901}}',
      `{"title":"${'t'.repeat(5000)}","small":0.00000012,"large":1E400,"many":0.1234567890123456789}`,
      '{"title":7}',
      '{}',
      '[]',
      'null',
      '"text"',
    ]
    const nodes = metas.map(
      (meta, at) => `"${at + 10}":{"class_type":"PreviewAny","inputs":{"source":["1",0]},"_meta":${meta}}`,
    )
    const graph = `{"1":{"class_type":"PrimitiveString","inputs":{"value":"x"}},${nodes.join(',')}}`
    const v1 = (await client.post('/prompt', `{"prompt":${graph}}`)).json.prompt_id
    const v2 = (await client.post('/api/v2/jobs', `{"workflow":${graph}}`)).json.id
    for (const id of [v1, v2]) {
      await client.untilHistory(id)
      for (const where of [`/history/${id}`, `/api/jobs/${id}`, `/api/v2/jobs/${id}/workflow`]) {
        const { text } = await client.get(where)
        for (const meta of metas) assert.ok(text.includes(`"_meta":${meta}`), `${where}: ${meta}`)
        assert.ok(text.includes('"1":{"class_type":"PrimitiveString","inputs":{"value":"x"}}'), 'none where none came')
      }
    }
  })

  test('with one good and one bad output runs the good one and tells of the bad one', async () => {
    const graph = { ...saveGraph(3), '9': { class_type: 'SaveImage', inputs: { filename_prefix: 'x' } } }
    const answer = await client.prompt(graph)
    assert.equal(answer.status, 200)
    assert.deepEqual(Object.keys(answer.json.node_errors), ['9'])
    const entry = await client.untilHistory(answer.json.prompt_id)
    assert.deepEqual([Object.keys(entry.outputs), entry.prompt[4]], [['3'], ['3']])
    assert.ok(entry.prompt[2]['9'] !== undefined, 'the whole graph is shown')
    assert.equal(entry.status.status_str, 'success')
  })

  test('runs only the outputs it asks for', async () => {
    const graph = {
      ...saveGraph(4),
      '9': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'y' } },
    }
    const id = await client.accepted(graph, { partial_execution_targets: ['9'] })
    assert.deepEqual(Object.keys((await client.untilHistory(id)).outputs), ['9'])
    const none = await client.prompt(graph, { partial_execution_targets: [] })
    assert.deepEqual([none.status, none.json.error.type], [400, 'prompt_no_outputs'])
    const unknown = await client.prompt(graph, { partial_execution_targets: ['77'] })
    assert.equal(unknown.json.error.type, 'prompt_no_outputs')
  })

  test('may bring its own id, once, in its one spelling', async () => {
    const id = randomUUID()
    assert.equal(await client.accepted(saveGraph(5), { prompt_id: id }), id)
    const again = await client.prompt(saveGraph(5), { prompt_id: id })
    assert.deepEqual([again.status, again.json.error.type], [400, 'invalid_prompt_id'])
    for (const wrong of [id.toUpperCase(), id.replaceAll('-', ''), 5, {}, '']) {
      const answer = await client.prompt(saveGraph(5), { prompt_id: wrong })
      assert.deepEqual([answer.status, answer.json.error.type], [400, 'invalid_prompt_id'], String(wrong))
    }
    assert.notEqual(await client.accepted(saveGraph(5), { prompt_id: null }), id)
  })

  test('that is no prompt is refused in the shape that clients read', async () => {
    const cases: [body: string, type: string][] = [
      ['{}', 'no_prompt'],
      ['', 'no_prompt'],
      ['{"prompt":', 'invalid_prompt'],
      ['[]', 'invalid_prompt'],
      ['{"prompt":[]}', 'invalid_prompt'],
      ['{"prompt":{"nodes":[],"links":[]}}', 'invalid_prompt'],
      ['{"prompt":{},"extra_data":5}', 'invalid_prompt'],
      ['{"prompt":{},"number":"x"}', 'invalid_prompt'],
      ['{"prompt":{}}', 'prompt_no_outputs'],
    ]
    for (const [body, type] of cases) {
      const answer = await client.post('/api/prompt', body)
      assert.deepEqual([answer.status, answer.json.error.type, answer.json.node_errors], [400, type, {}], body)
      for (const key of ['message', 'details', 'extra_info']) assert.ok(key in answer.json.error)
    }
  })

  test('never shows or stores a credential', async () => {
    const extra_data = {
      api_key_comfy_org: SECRET,
      auth_token_service_org: SECRET,
      my_token: SECRET,
      anything: { yes: `remembered ${SECRET}`, deep: [{ my_key: 'another-secret', session: { id: 'third-secret' } }] },
      extra_pnginfo: { workflow: { id: 'w-1', apiKey: 'another-secret', list: [{ note: `${SECRET}!` }] } },
    }
    const id = await client.accepted(saveGraph(6), { extra_data, client_id: 'me' })
    const entry = await client.untilHistory(id)
    assert.deepEqual(Object.keys(entry.prompt[3]).sort(), ['anything', 'client_id', 'create_time', 'extra_pnginfo'])
    assert.deepEqual(entry.prompt[3].anything, {
      yes: 'remembered [REDACTED]',
      deep: [{ my_key: '[REDACTED]', session: '[REDACTED]' }],
    })
    assert.deepEqual(entry.prompt[3].extra_pnginfo.workflow, {
      id: 'w-1',
      apiKey: '[REDACTED]',
      list: [{ note: '[REDACTED]!' }],
    })
    assert.equal((await client.get('/api/jobs?workflow_id=w-1')).json.jobs[0].id, id)
    const secrets = [SECRET, 'another-secret', 'third-secret']
    for (const where of ['/history', '/queue', '/api/jobs', `/api/jobs/${id}`, '/internal/logs']) {
      const { text } = await client.get(where)
      for (const secret of secrets) assert.ok(!text.includes(secret), where)
    }
    for (const file of readdirSync(app.dataDir, { recursive: true, withFileTypes: true })) {
      if (!file.isFile()) continue
      const bytes = readFileSync(path.join(file.parentPath, file.name))
      for (const secret of secrets) assert.ok(!bytes.includes(secret), file.name)
    }
  })

  test('that fails tells where and why, and keeps what came before', async () => {
    const graph = { ...failingGraph(), '5': { class_type: 'PreviewImage', inputs: { images: ['1', 0] } } }
    const id = await client.accepted(graph)
    const entry = await client.untilHistory(id)
    assert.deepEqual([entry.status.status_str, entry.status.completed], ['error', false])
    const [type, error] = entry.status.messages.at(-1)
    assert.equal(type, 'execution_error')
    assert.deepEqual([error.node_id, error.node_type, error.prompt_id], ['2', 'SaveImage', id])
    assert.ok(error.exception_message.endsWith('\n') && error.executed.includes('1'))
    assert.ok(!JSON.stringify(error.traceback).includes('.ts'), 'no line of our own source')
    const job = (await client.get(`/api/jobs/${id}`)).json
    assert.deepEqual([job.status, job.execution_error], ['failed', error])
    assert.equal((await client.get(`/api/job/${id}/status`)).json.status, 'error')
  })

  test('can be taken out of the history and is still a job', async () => {
    const [one, two] = [await client.accepted(saveGraph(7)), await client.accepted(saveGraph(8))]
    await client.untilHistory(one)
    await client.untilHistory(two)
    assert.deepEqual((await client.post('/history', { delete: [one, 'none'] })).json, {})
    const left = (await client.get('/history')).json
    assert.ok(!(one in left) && two in left)
    assert.deepEqual((await client.get(`/history/${one}`)).json, {})
    assert.equal((await client.get(`/api/v2/jobs/${one}`)).json.status, 'succeeded')
    await client.post('/history', { clear: true })
    assert.deepEqual((await client.get('/history')).json, {})
    const three = await client.accepted(saveGraph(9))
    await client.untilHistory(three)
    assert.deepEqual(Object.keys((await client.get('/history')).json), [three])
  })

  test('is in the history in the order of its end, by pages from either side', async () => {
    await client.post('/history', { clear: true })
    const ids: string[] = []
    for (let color = 10; color < 15; color++) {
      ids.push(await client.accepted(saveGraph(color)))
      await client.untilHistory(ids[ids.length - 1])
    }
    const page = async (query: string) => Object.keys((await client.get(`/history${query}`)).json)
    assert.deepEqual(await page(''), ids)
    assert.deepEqual(await page('?max_items=2'), ids.slice(3))
    assert.deepEqual(await page('?max_items=2&offset=1'), ids.slice(1, 3))
    assert.deepEqual(await page('?max_items=2&offset=99'), [])
    assert.deepEqual(await page('?offset=-1&max_items='), ids)
    const v2 = (await client.get('/api/history_v2?max_items=2')).json.history
    assert.deepEqual(
      v2.map((entry: { prompt_id: string }) => entry.prompt_id),
      [ids[4], ids[3]],
    )
    const listed = (await client.get('/api/jobs?limit=2&offset=1&sort_order=asc')).json
    assert.deepEqual([listed.jobs.length, listed.pagination.total, listed.pagination.has_more], [2, 5, true])
  })

  test('and everything about it survives a restart', async () => {
    const id = await client.accepted(saveGraph(20), { number: -5, client_id: 'me' })
    const before = await client.untilHistory(id)
    assert.equal(before.prompt[0], -5)
    app = await app.restart()
    client = new LegacyClient(app.url)
    assert.deepEqual((await client.get(`/history/${id}`)).json[id], before)
    const { filename, subfolder, type } = before.outputs['3'].images[0]
    const view = await client.get(`/view?${new URLSearchParams({ filename, subfolder, type })}`)
    assert.equal(view.status, 200)
  })
})

describe('the queue', () => {
  const engine = createFakeEngine()
  let app: TestApp
  let client: LegacyClient
  before(async () => {
    app = await startTestApp({
      settings: { workers: '1' },
      patch: { jobs: { cancelGraceMs: 1000 } },
      overrides: { engine },
    })
    client = new LegacyClient(app.url)
  })
  after(async () => {
    engine.release()
    await app[Symbol.asyncDispose]()
  })

  const idsOf = (entries: unknown[][]) => entries.map(([, id]) => id)

  test('holds a prompt before its submit is answered, in the order in which it will run', async () => {
    const running = await client.accepted({ '1': node('FakeHang') })
    await client.untilStatus(running, 'executing')
    const normal = await client.accepted({ '1': node('FakeSave') }, { client_id: 'c', extra_data: { foo: 1 } })
    const late = await client.accepted({ '1': node('FakeSave') }, { number: 7 })
    const front = await client.accepted({ '1': node('FakeSave') }, { front: true })
    const frontier = await client.accepted({ '1': node('FakeSave') }, { front: true })
    const first = await client.prompt({ '1': node('FakeSave') }, { number: -1000 })
    assert.match(first.text, /"number":-1000\.0/)
    const { queue_running, queue_pending } = (await client.get('/queue')).json
    assert.deepEqual(idsOf(queue_running), [running])
    assert.deepEqual(idsOf(queue_pending), [first.json.prompt_id, frontier, front, normal, late])
    const entry = queue_pending[3]
    assert.deepEqual(
      [entry[2], Object.keys(entry[3]), entry[4]],
      [{ '1': node('FakeSave') }, ['foo', 'client_id', 'create_time'], ['1']],
    )
    assert.equal((await client.get('/prompt')).json.exec_info.queue_remaining, 6)
    const jobs = (await client.get('/api/jobs?status=PENDING,%20in_progress')).json
    assert.deepEqual([jobs.pagination.total, jobs.jobs.length], [6, 6])

    assert.deepEqual((await client.post('/queue', { delete: [late, running, 'none'] })).json, {
      deleted: [late, running],
      cleared: false,
    })
    await client.untilStatus(running, 'cancelled')
    assert.deepEqual((await client.get(`/history/${late}`)).json, {}, 'what never ran is no history')
    assert.equal((await client.get(`/api/jobs/${late}`)).json.status, 'cancelled')
    const interrupted = await client.untilHistory(running)
    assert.deepEqual(interrupted.status.messages.at(-1)[0], 'execution_interrupted')
    assert.equal(interrupted.status.messages.at(-1)[1].node_type, 'FakeHang')
    for (const id of [first.json.prompt_id, frontier, front, normal]) await client.untilStatus(id, 'success')
    assert.deepEqual(
      engine.runs.slice(-4).map(({ jobId }) => jobId),
      [first.json.prompt_id, frontier, front, normal],
    )
  })

  test('is emptied of what waits, and only of that', async () => {
    const running = await client.accepted({ '1': node('FakeHang') })
    await client.untilStatus(running, 'executing')
    const waiting = await client.accepted({ '1': node('FakeSave') })
    assert.match((await client.get(`/api/job/${waiting}/status`)).json.status, /^(submitted|queued_waiting)$/)
    assert.deepEqual((await client.post('/queue', { clear: true })).json, { deleted: [waiting], cleared: true })
    const listed = (await client.get('/api/jobs')).json
    assert.equal(
      listed.jobs.some((job: { readonly id: string }) => job.id === waiting),
      false,
      'what was taken out before it ran is in no list',
    )
    assert.equal(listed.pagination.limit, 1000)
    await client.post('/interrupt', { prompt_id: waiting })
    assert.equal((await client.get(`/api/job/${running}/status`)).json.status, 'executing')
    const empty = await client.call('/interrupt', { method: 'POST', headers: { 'content-type': 'application/json' } })
    assert.deepEqual([empty.status, empty.json], [200, {}])
    await client.untilStatus(running, 'cancelled')
    assert.deepEqual((await client.post(`/api/jobs/${running}/cancel`)).json, { cancelled: false })
  })
})

test('an account that may not run anything is told so, and one without credits', async () => {
  for (const [refusal, status, type] of [
    ['subscription_inactive', 429, 'PAYMENT_REQUIRED'],
    ['insufficient_credits', 402, 'INSUFFICIENT_CREDITS'],
    ['queue_full', 429, 'QUEUE_LIMIT'],
  ] as const) {
    const submitPrompt = async () => {
      throw new ServiceError(refusal, 'no')
    }
    await using app = await startTestApp({
      overrides: {
        engine: createFakeEngine(),
        surfaceParts: (parts) => ({ ...parts, jobs: { ...parts.jobs, submitPrompt } }),
      },
    })
    const answer = await new LegacyClient(app.url).prompt(saveGraph(1))
    assert.deepEqual([answer.status, answer.json.error.type], [status, type])
    assert.equal(answer.headers.has('retry-after'), refusal === 'queue_full')
  }
})
