/** One description of a workflow, two doors: models of the service are endpoints of everybody, endpoints of an account are models of its own. */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { startFleetApp } from '../../support/app/fleet-app.ts'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { startShared } from '../../support/app/start-shared.ts'
import type { Answer } from '../../support/clients/call.ts'
import { CheckedClient, node } from '../../support/clients/checked-client.ts'
import { RouterClient, refusedWith } from '../../support/clients/router-client.ts'
import { card } from '../../support/endpoints/card.ts'
import { waitUntil } from '../../support/wait-until.ts'

const DECLARATION = {
  title: 'A card',
  description: 'Says something.',
  only: true,
  inputs: {
    headline: { max_length: 20, required: true },
    width: { from: '1.width', maximum: 512 },
  },
}

const PRICES = '{"pools":{"*":{"perSecondMicros":0,"minimumMicros":500,"holdMicros":2000}}}'

// biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
const sizeOf = (file: any) => {
  const png = Buffer.from(file.data, 'base64')
  return [png.readUInt32BE(16), png.readUInt32BE(20)]
}

function connect(url: string, headers: Record<string, string> = {}) {
  const client = new CheckedClient(url)
  const send = (method: string, path: string, body?: unknown, more: Record<string, string> = {}): Promise<Answer> =>
    client.call(`/api/v2/endpoints${path}`, {
      method,
      headers: { ...headers, ...more },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  return {
    send,
    router: new RouterClient(url, headers),
    publish: (name: string, file: object, more: object = {}) =>
      send('POST', '', { name, file, declaration: DECLARATION, ...more }),
    run: (reference: string, inputs: object) => send('POST', `/${reference}/runs`, { inputs }, { prefer: 'wait=60' }),
    jobs: async () => (await client.call('/api/v2/jobs', { headers })).json.jobs as { id: string; endpoint: unknown }[],
  }
}

const problems = (answer: Answer) =>
  answer.json.error.details.inputs.map(({ name, reason }: { name: string; reason: string }) => `${name}: ${reason}`)

describe('a model that is a workflow', () => {
  let service: TestApp
  let folder: string
  let client: ReturnType<typeof connect>
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'atelier-models-'))
    await mkdir(join(folder, 'local'))
    service = await startTestApp({ settings: { workers: '2', catalogs: folder } })
    client = connect(service.url)
  })
  after(async () => {
    await service[Symbol.asyncDispose]()
    await rm(folder, { recursive: true })
  })
  const write = async (name: string, change: object = {}) => {
    const model = {
      id: `local/${name}`,
      price: { kind: 'free' },
      input: {
        schema: {
          type: 'object',
          required: ['text'],
          properties: {
            text: { type: 'string', maxLength: 10 },
            width: { type: 'integer', multipleOf: 8, default: 16 },
          },
        },
        example: { text: 'Hi' },
      },
      adapter: { workflow: card('Hello'), fields: { text: '2.text', width: '1.width' } },
      ...change,
    }
    await writeFile(join(folder, 'local', `${name}.json`), JSON.stringify(model))
    const { outcome, ...rest } = (await service.app.reloadModels()) as { outcome: string }
    assert.equal(outcome, 'reloaded', JSON.stringify(rest))
  }

  test('is an endpoint without being published, with its document, its schema and its runs', async () => {
    const listed = (await client.send('GET', '')).json.endpoints as { name: string; owner: string }[]
    assert.deepEqual(
      listed.map(({ name, owner }) => [name, owner]),
      ['composite', 'resize', 'text-card'].map((name) => [name, 'service']),
    )
    const run = await client.run('text-card', { text: 'Hello', width: 300, height: 100 })
    assert.deepEqual([run.status, run.json.status], [200, 'succeeded'], run.text)
    const [picture] = run.json.results.image
    const png = Buffer.from(await (await fetch(picture.url)).arrayBuffer())
    assert.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20)], [300, 100])
    const again = await client.send('GET', `/text-card/runs/${run.json.id}`)
    assert.deepEqual([again.json.results.image.length, again.json.inputs.width], [1, 300])
    assert.equal((await client.send('GET', '/text-card/runs')).json.runs.length, 1)
    assert.deepEqual((await client.send('GET', '/text-card/schema')).json.required, ['text'])
    const document = (await client.send('GET', '/text-card/openapi.json')).json
    assert.equal(document.paths['/api/v2/endpoints/text-card/runs'].post.operationId, 'run_text_card')
    assert.match((await client.send('GET', '/text-card/docs')).text, /Text card/)
  })

  test('takes files as every endpoint does', async () => {
    const example = (await client.send('GET', '/resize/versions/latest')).json.inputs.find(
      ({ name }: { name: string }) => name === 'image',
    ).example
    const run = await client.run('resize', { image: example, width: 20, height: 10 })
    assert.deepEqual([run.status, run.json.status], [200, 'succeeded'], run.text)
    const missing = await client.run('resize', { width: 20, height: 10, image: 'nowhere.png' })
    assert.deepEqual(problems(missing), ['image: not_available'])
    const wrong = await client.run('resize', { width: 99999, height: 10, metod: 'area' })
    assert.deepEqual(problems(wrong), ['metod: unknown', 'image: missing', 'width: too_large'])
  })

  test('is judged by its schema at both doors, also where that says more than an input can', async () => {
    await write('strict')
    const refused = await client.run('strict', { text: 'Hello', width: 12 })
    assert.deepEqual([refused.status, problems(refused)], [422, ['width: no_match']], refused.text)
    assert.equal((await client.router.run('local/strict', { text: 'Hello', width: 12 })).status, 422)
    // What is left out has the value of the workflow, at both doors.
    const run = await client.run('strict', { text: 'Hello' })
    assert.equal(run.json.inputs.width, 64)
    const direct = await client.router.run('local/strict', { text: 'Hello' })
    assert.deepEqual(sizeOf(direct.json.files[0]), [64, 32])
  })

  test('belongs to the service: its number is that of its content, and nobody changes it', async () => {
    await write('moving')
    const number = async () => (await client.send('GET', '/moving')).json.current_version
    const first = await number()
    await write('other')
    assert.equal(await number(), first)
    assert.equal((await client.run(`moving@${first}`, { text: 'x' })).json.endpoint.version, first)
    await write('moving', { adapter: { workflow: card('Goodbye'), fields: { text: '2.text' } } })
    assert.notEqual(await number(), first)
    assert.equal((await client.run(`moving@${first}`, { text: 'x' })).status, 404)
    for (const [method, path, body] of [
      ['PATCH', '/moving', { state: 'stopped' }],
      ['DELETE', '/moving', undefined],
      ['PUT', '/moving/aliases/stable', { version: first }],
    ] as const) {
      const refused = await client.send(method, path, body)
      assert.deepEqual([refused.status, refused.json.error.code], [403, 'forbidden'], refused.text)
    }
    const versions = (await client.send('GET', '/moving/versions')).json.versions
    assert.deepEqual(versions.length, 1)
    const exported = (await client.send('GET', '/moving/export')).json
    const copied = await client.send('POST', '', { name: 'copied', file: exported })
    assert.equal(copied.status, 201, copied.text)
    await client.send('DELETE', '/copied')
  })

  test('gives way to an endpoint of the account that has the same name', async () => {
    await write('poster')
    assert.equal((await client.publish('poster', card('Own'))).status, 201)
    const listed = (await client.send('GET', '?limit=100')).json.endpoints as { name: string; owner: string }[]
    assert.deepEqual(
      listed.filter(({ name }) => name === 'poster').map(({ owner }) => owner),
      ['account'],
    )
    assert.equal((await client.run('poster', { headline: 'x' })).json.endpoint.version, 1)
    assert.equal((await client.router.run('local/poster', { headline: 'x' })).json.version, 1)
    assert.equal((await client.send('DELETE', '/poster')).status, 204)
    assert.ok((await client.run('poster', { text: 'x' })).json.endpoint.version > 1)
    assert.equal((await client.router.run('local/poster', { text: 'x' })).json.job_id, undefined)
  })

  test('gets a name that endpoints can have', async () => {
    await write('docs')
    await write('v1.5_fast')
    await write('v1-5-fast')
    const listed = (await client.send('GET', '?limit=100')).json.endpoints as { name: string }[]
    const names = listed.map(({ name }) => name)
    for (const name of ['docs-2', 'v1-5-fast', 'v1-5-fast-2']) assert.ok(names.includes(name), names.join(' '))
    assert.equal((await client.run('docs-2', { text: 'x' })).json.status, 'succeeded')
  })
})

describe('an endpoint as a model', () => {
  let service: TestApp
  let client: ReturnType<typeof connect>
  before(async () => {
    service = await startTestApp({ settings: { workers: '2' } })
    client = connect(service.url)
    assert.equal((await client.publish('greeting', card('Hello'))).status, 201)
  })
  after(() => service[Symbol.asyncDispose]())

  test('is one job, whose outputs are the answer; the same key is answered again and makes no other', async () => {
    const before = (await client.jobs()).length
    const input = { headline: 'Good morning', width: 96 }
    const answer = await client.router.run('local/greeting', input, { key: 'once' })
    assert.equal(answer.status, 200, answer.text)
    const { files, texts, job_id: jobId, version } = answer.json
    assert.deepEqual([files.length, files[0].output, texts, version], [1, 'image', [], 1])
    assert.deepEqual([files[0].content_type, sizeOf(files[0])], ['image/png', [96, 32]])
    // What it costs, the job says.
    assert.equal(answer.headers['x-service-credits-used'], undefined)
    const run = (await client.send('GET', `/greeting/runs/${jobId}`)).json
    assert.deepEqual([run.status, run.inputs, run.endpoint], ['succeeded', input, { name: 'greeting', version: 1 }])
    const again = await client.router.run('local/greeting', input, { key: 'once' })
    assert.deepEqual([again.headers['idempotent-replayed'], again.json.job_id], ['true', jobId])
    refusedWith(await client.router.run('local/greeting', { headline: 'x' }, { key: 'once' }), 409, 'invalid_input')
    assert.equal((await client.jobs()).length, before + 1)
  })

  test('gets numbers with all their digits', async () => {
    const file = { '1': node('PrimitiveInt', { value: 5 }), '2': node('PreviewAny', { source: ['1', 0] }) }
    const made = await client.publish('exact', file, { declaration: { only: true, inputs: { number: '1.value' } } })
    assert.equal(made.status, 201, made.text)
    const body = '\uFEFF{"number": 9007199254740993}'
    const answer = await client.router.call('/v2/models/local/exact', { method: 'POST', body })
    assert.deepEqual([answer.status, answer.json.texts], [200, ['9007199254740993']], answer.text)
    await client.send('DELETE', '/exact')
  })

  test('refuses wrong inputs field by field, and then there is no job', async () => {
    const before = (await client.jobs()).length
    const wrong = await client.router.run('local/greeting', { headlin: 'x', width: 4096 }, { key: 'wrong' })
    const { detail } = refusedWith(wrong, 422, 'invalid_input').json
    assert.deepEqual(
      detail.map(({ loc, type }: { loc: string[]; type: string }) => [loc.join('.'), type]),
      [
        ['body.headlin', 'value_error'],
        ['body.headline', 'missing'],
        ['body.width', 'less_than_equal'],
      ],
    )
    assert.equal((await client.jobs()).length, before)
    assert.equal((await client.router.run('local/greeting', { headline: 'x' }, { key: 'wrong' })).status, 200)
  })

  test('is chosen with its version', async () => {
    const { width: _, ...fewer } = DECLARATION.inputs
    const declaration = { ...DECLARATION, inputs: fewer }
    assert.equal((await client.publish('greeting', card('Bye'), { declaration, breaking: true })).status, 201)
    await client.send('PUT', '/greeting/aliases/wide', { version: 1 })
    const versionOf = async (reference: string) =>
      (await client.router.run(`local/${reference}`, { headline: 'x' })).json.version
    assert.deepEqual([await versionOf('greeting'), await versionOf('greeting@1')], [2, 1])
    assert.deepEqual([await versionOf('greeting@wide'), await versionOf('greeting@latest')], [1, 2])
    refusedWith(await client.router.run('local/greeting@9', { headline: 'x' }), 404, 'model_not_found')
    await client.send('PATCH', '/greeting', { current_version: 1 })
  })

  test('stands in the catalogue, with a document of its own and its price', async () => {
    const ids: string[] = []
    for (let cursor = ''; ; ) {
      const page = (await client.router.call(`/v2/models?limit=3${cursor}`)).json
      ids.push(...page.data.map(({ id }: { id: string }) => id))
      if (!page.has_more) break
      cursor = `&cursor=${encodeURIComponent(page.next_cursor)}`
    }
    assert.deepEqual(ids, [...new Set(ids)].toSorted())
    assert.deepEqual(
      ids.filter((id) => id.startsWith('local/')),
      ['composite', 'greeting', 'resize', 'text-card'].map((name) => `local/${name}`),
    )
    assert.equal((await client.router.call('/v2/models/local/greeting')).json.id, 'local/greeting')
    const document = (await client.router.call('/v2/models/local/greeting/openapi.json')).json
    const { schema } = document.paths['/v2/models/local/greeting'].post.requestBody.content['application/json']
    assert.deepEqual([schema.required, schema.properties.width.maximum], [['headline'], 512])
    const body = JSON.stringify({ headline: 'x' })
    const estimate = await client.router.call('/v2/models/local/greeting/estimate', { method: 'POST', body })
    assert.partialDeepStrictEqual(estimate.json, { model: 'local/greeting', source: 'exact', amount: '0.00' })
  })

  test('waits in the queue of the router, and is collected from there', async () => {
    const path = '/v2/models/local/greeting/requests'
    const body = JSON.stringify({ headline: 'Queued' })
    const { json } = await client.router.call(path, { method: 'POST', body, headers: { 'idempotency-key': 'queued' } })
    const status = async () => (await client.router.call(`${path}/${json.request_id}/status`)).json.status
    await waitUntil(async () => (await status()) === 'COMPLETED')
    const result = await client.router.call(`${path}/${json.request_id}`)
    assert.deepEqual([result.status, result.json.files.length], [200, 1], result.text)
    const gone = await client.router.call(path.replace('greeting', 'gone'), { method: 'POST', body })
    refusedWith(gone, 404, 'model_not_found')
  })

  test('that was stopped by its owner, or is given a file that is none, says so', async () => {
    await client.publish('stopped', card('x'))
    await client.send('PATCH', '/stopped', { state: 'stopped' })
    refusedWith(await client.router.run('local/stopped', { headline: 'x' }), 403, 'not_enabled')
    const loading = {
      '1': node('LoadImage', { image: 'example.png' }),
      '2': node('SaveImage', { images: ['1', 0], filename_prefix: 'x' }),
    }
    await client.publish('loading', loading, { declaration: null })
    const [{ name }] = (await client.send('GET', '/loading/versions/1')).json.inputs
    const bad = await client.router.run('local/loading', { [name]: 'data:image/png;base64,AAAA' })
    assert.equal(refusedWith(bad, 422, 'invalid_input').json.detail[0].type, 'image_load_error')
  })

  test('is no model of nodes: a job must not wait for a job', async () => {
    const jobs = new CheckedClient(service.url)
    const job = await jobs.run({
      '1': node('RunModel', { model: 'local/greeting', input: '{"headline": "x"}' }),
      '2': node('PreviewAny', { source: ['1', 0] }),
    })
    assert.match(String(job.error?.['message']), /there is no model "local\/greeting"/)
    const inside = await jobs.run({
      '1': node('RunModel', { model: 'local/text-card', input: '{"text": "x"}' }),
      '2': node('PreviewAny', { source: ['1', 0] }),
    })
    assert.equal(inside.status, 'succeeded', JSON.stringify(inside.error))
  })
})

test('a call of the router runs on a fleet of ComfyUI servers', async () => {
  await using fleet = await startFleetApp({ servers: [{}] })
  const client = connect(fleet.url)
  const file = {
    '1': node('EmptyImage', { width: 64, height: 32, batch_size: 1, color: 255 }),
    '2': node('SaveImage', { images: ['1', 0], filename_prefix: 'plain' }),
  }
  const declaration = { only: true, inputs: { width: { from: '1.width', maximum: 512 } } }
  const made = await client.publish('plain', file, { declaration })
  assert.equal(made.status, 201, made.text)
  const answer = await client.router.run('local/plain', { width: 80 }, { key: 'fleet' })
  assert.equal(answer.status, 200, answer.text)
  assert.equal(answer.json.files[0].content_type, 'image/png')
  const again = await client.router.run('local/plain', { width: 80 }, { key: 'fleet' })
  assert.equal(again.text, answer.text)
  assert.equal((await client.jobs()).length, 1)
})

test('an account sees, runs and pays its own endpoints only', async () => {
  await using app = await startShared({ prices: PRICES })
  const [one, two, poor] = [
    await app.account('one', { creditFloorMicros: -1_000_000 }),
    await app.account('two'),
    await app.account('poor', { creditFloorMicros: 0 }),
  ]
  const asOne = connect(app.url, { authorization: `Bearer ${one.key}` })
  const asTwo = connect(app.url, { authorization: `Bearer ${two.key}` })
  const file = { '1': node('FakeSave', { text: 'mine' }) }
  const declaration = { only: true, inputs: { text: '1.text' } }
  assert.equal((await asOne.publish('mine', file, { declaration })).status, 201)
  for (const isReplayed of [undefined, 'true']) {
    const answer = await asOne.router.run('local/mine', { text: 'x' }, { key: 'paid' })
    assert.deepEqual([answer.status, answer.headers['idempotent-replayed']], [200, isReplayed], answer.text)
  }
  const body = JSON.stringify({ text: 'x' })
  const estimate = await asOne.router.call('/v2/models/local/mine/estimate', { method: 'POST', body })
  assert.equal(estimate.json.source, 'unknown')
  assert.match(estimate.json.reason, /at least \$0\.0005/)
  // Its job is charged, once, and the call is not.
  assert.partialDeepStrictEqual((await app.admin('GET', '/usage?account=one')).json, { total_usd: '0.0005', count: 1 })
  const failing = { '1': node('FakeFail', {}) }
  assert.equal((await asOne.publish('failing', failing, { declaration: null })).status, 201)
  for (let tries = 0; tries < 2; tries += 1)
    refusedWith(await asOne.router.run('local/failing', {}, { key: 'failing' }), 502, 'provider_error')
  assert.equal((await asOne.jobs()).length, 2)
  const asPoor = connect(app.url, { authorization: `Bearer ${poor.key}` })
  assert.equal((await asPoor.publish('mine', file, { declaration })).status, 201)
  refusedWith(await asPoor.router.run('local/mine', { text: 'x' }), 402, 'insufficient_credits')
  assert.deepEqual(await asPoor.jobs(), [])
  const foreign = await asTwo.router.run('local/mine', { text: 'x' })
  const unknown = await asTwo.router.run('local/none', { text: 'x' })
  // What may have been meant is a matter of letters.
  const told = ({ status, json }: Answer) => [status, json.error_type, json.detail.replace(/"local.*/, '')]
  assert.deepEqual(told(foreign), told(unknown))
  assert.equal(foreign.status, 404)
  const idsOf = async ({ router }: typeof asOne) =>
    (await router.call('/v2/models?limit=100')).json.data.map(({ id }: { id: string }) => id) as string[]
  assert.ok((await idsOf(asOne)).includes('local/mine'))
  assert.ok(!(await idsOf(asTwo)).includes('local/mine'))
  // A key for models alone does not reach them.
  const { json } = await app.admin('POST', '/accounts/one/keys', { scopes: ['models:read', 'models:run'] })
  const narrow = connect(app.url, { authorization: `Bearer ${json.text}` })
  assert.ok(!(await idsOf(narrow)).includes('local/mine'))
  refusedWith(await narrow.router.run('local/mine', { text: 'x' }), 404, 'model_not_found')
  // A key for some endpoints calls no models, and has none of the service unless it names them.
  const only = (await app.admin('POST', '/accounts/one/keys', { endpoints: ['mine', 'text-card'] })).json
  const limited = connect(app.url, { authorization: `Bearer ${only.text}` })
  refusedWith(await limited.router.run('local/mine', { text: 'x' }), 403, 'forbidden')
  assert.equal((await limited.send('GET', '/text-card')).status, 200)
  assert.equal((await limited.send('GET', '/resize')).status, 404)
  // What an account may not use as a model, it has not as an endpoint.
  const barred = await app.account('barred', { denyModels: ['local/text-*', 'local/mine'] })
  const asBarred = connect(app.url, { authorization: `Bearer ${barred.key}` })
  assert.equal((await asBarred.run('text-card', { text: 'x' })).status, 404)
  assert.equal((await asBarred.send('GET', '/resize')).status, 200)
  assert.equal((await asBarred.publish('mine', file, { declaration })).status, 201)
  for (const id of ['mine', 'mine@1'])
    refusedWith(await asBarred.router.run(`local/${id}`, { text: 'x' }), 403, 'forbidden')
})
