import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { MODELS, type RouterApp, startRouter } from '../../support/app/start-router.ts'
import { call } from '../../support/clients/call.ts'
import { refusedWith } from '../../support/clients/router-client.ts'
import { fakeModel } from '../../support/providers/fake-provider.ts'

let app: RouterApp
before(async () => {
  app = await startRouter()
})
after(() => app[Symbol.asyncDispose]())

async function walk(limit: number): Promise<string[]> {
  const ids: string[] = []
  let cursor: string | null = null
  do {
    const query: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`
    const { json } = await app.client.call(`/v2/models?limit=${limit}${query}`)
    ids.push(...json.data.map(({ id }: { id: string }) => id))
    assert.equal(json.has_more, json.next_cursor !== undefined)
    cursor = json.next_cursor ?? null
  } while (cursor !== null)
  return ids
}

test('a walk of any page size shows every listed model once, in order', async () => {
  const all = await walk(100)
  assert.deepEqual(all, all.toSorted())
  assert.equal(new Set(all).size, all.length)
  for (const id of ['fake/direct', 'fake/listed', 'sandbox/echo']) assert.ok(all.includes(id), id)
  for (const id of ['fake/secret', 'fake/old', 'fake/special']) assert.ok(!all.includes(id), id)
  for (const limit of [1, 7]) assert.deepEqual(await walk(limit), all)
})

const LIMITS: [asked: string, served: number][] = [
  ['-1', 20],
  ['0', 20],
  ['1', 1],
  ['100', 100],
  ['1000', 100],
]
for (const [asked, served] of LIMITS) {
  test(`limit=${asked} serves pages of ${served}`, async () => {
    const { json } = await app.client.call(`/v2/models?limit=${asked}`)
    assert.equal(json.limit, served)
    assert.ok(json.data.length <= served)
  })
}

test('a limit that is no number, and every cursor that is not ours, is refused', async () => {
  const { json } = await app.client.call('/v2/models?limit=1')
  const cursor: string = json.next_cursor
  const forged = `${cursor.slice(0, -2)}${cursor.endsWith('AA') ? 'BB' : 'AA'}`
  const bad = ['limit=x', 'cursor=', 'cursor=abc', 'cursor=%20', `cursor=${forged}`, `cursor=${'a'.repeat(513)}`]
  for (const query of bad) refusedWith(await app.client.call(`/v2/models?${query}`), 400, 'invalid_input')
})

test('a cursor that was cut, extended or changed in any letter is refused', async () => {
  const cursor: string = (await app.client.call('/v2/models?limit=1')).json.next_cursor
  const changed = Array.from(
    cursor,
    (letter, at) => cursor.slice(0, at) + (letter === 'A' ? 'B' : 'A') + cursor.slice(at + 1),
  )
  const cut = Array.from(cursor, (_letter, at) => cursor.slice(0, at + 1)).slice(0, -1)
  const extended = ['A', 'AA', 'AAAA', '=', '==', '.', cursor].map((more) => cursor + more)
  for (const wrong of [...changed, ...cut, ...extended])
    refusedWith(await app.client.call(`/v2/models?cursor=${encodeURIComponent(wrong)}`), 400, 'invalid_input')
})

const WRONG_METHODS: [path: string, allowed: string, methods: readonly string[]][] = [
  ['/v2/models', 'GET, HEAD', ['POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND']],
  ['/v2/models/openapi.json', 'GET, HEAD', ['POST', 'DELETE']],
  ['/v2/models/fake/direct', 'GET, HEAD, POST', ['PUT', 'PATCH', 'DELETE', 'PROPFIND']],
  ['/v2/models/no/such-model', 'GET, HEAD, POST', ['DELETE']],
  ['/v2/models/fake/direct/openapi.json', 'GET, HEAD', ['POST', 'PUT']],
  ['/v2/models/fake/direct/estimate', 'POST', ['GET', 'DELETE']],
  ['/v2/models/fake/direct/requests', 'POST', ['GET', 'PUT']],
  ['/v2/models/fake/direct/requests/0199b3f4-1d2e-7a3b-8c4d-5e6f70819234/cancel', 'PUT', ['GET', 'POST']],
]
for (const [path, allowed, methods] of WRONG_METHODS) {
  test(`${path} takes ${allowed}; any other method is a 405 that says so`, async () => {
    for (const method of methods) {
      const answer = await app.client.call(`${path}?x=1`, { method, body: method.startsWith('P') ? '{}' : undefined })
      refusedWith(answer, 405, 'invalid_input')
      assert.equal(answer.headers['allow'], allowed, method)
    }
  })
}

// Not those that tell browsers how to treat the answer.
const OWN_HEADER = /^(x-(service|comfy|committed|concurrency)-|etag|idempotent|retry-after|allow$)/

test('a page of another origin can read every header that an answer has of its own', async () => {
  const origin = 'https://app.example'
  await using shared = await startRouter({ settings: { corsOrigins: origin }, account: { micros: 10_000_000 } })
  const run = { method: 'POST', body: '{"prompt":"x"}', headers: { origin, 'idempotency-key': 'one' } }
  for (const answer of [
    await shared.client.call('/v2/models/fake/paid', run),
    await shared.client.call('/v2/models/fake/paid', run),
    await shared.client.call('/v2/models/fake/paid', { method: 'DELETE', headers: { origin } }),
    await shared.client.call('/v2/models/fake/paid/openapi.json', { headers: { origin } }),
    await shared.client.call('/v2/models/nobody/nothing', { headers: { origin } }),
  ]) {
    const exposed = String(answer.headers['access-control-expose-headers']).toLowerCase().split(', ')
    const own = Object.keys(answer.headers).filter((name) => OWN_HEADER.test(name))
    for (const name of own) assert.ok(exposed.includes(name), `${name} is not exposed`)
    for (const name of [
      'etag',
      'idempotent-replayed',
      'x-service-error-type',
      'x-comfy-error-type',
      'x-committed-spend-limit',
    ])
      assert.ok(exposed.includes(name), `${name} is not exposed`)
  }
  const preflight = await shared.client.call('/v2/models/fake/paid/openapi.json', {
    method: 'OPTIONS',
    headers: { origin, 'access-control-request-method': 'GET', 'access-control-request-headers': 'if-none-match' },
  })
  const allowed = String(preflight.headers['access-control-allow-headers']).toLowerCase().split(', ')
  assert.ok(allowed.includes('if-none-match'))
})

test('entries say who the model is and whether refusals cost, and nothing about prices', async () => {
  const { json } = await app.client.call('/v2/models/fake/paid')
  const billing = { charges_on_policy_rejection: 'unknown' }
  assert.deepEqual(json, { id: 'fake/paid', provider: 'fake', model: 'paid', billing, price_confirmed: true })
  const { json: open } = await app.client.call('/v2/models/fal/fal-gpt-image-2')
  assert.equal(open.price_confirmed, false)
})

test('the address of the schema is shown where it is HTTPS', async () => {
  await using secure = await startRouter({ settings: { publicUrl: 'https://models.example.com' } })
  const { json } = await secure.client.call('/v2/models/fake/strict')
  assert.equal(json.input_schema_url, 'https://models.example.com/v2/models/fake/strict/openapi.json')
  const plain = await secure.client.call('/v2/models/fake/direct')
  assert.equal(plain.json.input_schema_url, undefined)
})

test('an unknown id ends with what is close to it, and never with what the caller may not see', async () => {
  const { json } = refusedWith(await app.client.call('/v2/models/fake/direkt'), 404, 'model_not_found')
  assert.match(json.detail, /fake\/direct(, [a-z/.-]+){0,2}$/)
  const hidden = refusedWith(await app.client.call('/v2/models/fake/specia'), 404, 'model_not_found')
  assert.doesNotMatch(hidden.json.detail, /fake\/special/)
})

test('a retired id names its successor, an unreleased one does not exist', async () => {
  const retired = refusedWith(await app.client.call('/v2/models/fake/old'), 404, 'model_not_found')
  assert.match(retired.json.detail, /fake\/direct$/)
  refusedWith(await app.client.call('/v2/models/fake/secret'), 404, 'model_not_found')
  refusedWith(await app.client.run('fake/old', {}), 404, 'model_not_found')
})

const NO_IDS = [
  'Fake/direct',
  'fake/a--b',
  'fake/direct/variant',
  'fake/..',
  `fake/${'x'.repeat(129)}`,
  `fake/${'x'.repeat(500)}`,
  'fake/%zz',
  'fake',
]
for (const id of NO_IDS) {
  test(`${id.slice(0, 40)} is the id of no model`, async () => {
    refusedWith(await app.client.call(`/v2/models/${id}`), 404, 'model_not_found')
  })
}

test('documents are tagged, and whoever has them gets no body', async () => {
  for (const path of [
    '/v2/models',
    '/v2/models?limit=1',
    '/v2/models/fake/strict',
    '/v2/models/fake/strict/openapi.json',
    '/v2/models/openapi.json',
  ]) {
    const first = await app.client.call(path)
    const etag = String(first.headers.etag)
    assert.match(etag, /^"[0-9a-f]{64}"$/, path)
    assert.equal(first.headers['cache-control'], 'private, max-age=300, must-revalidate')
    for (const header of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
      const again = await app.client.call(path, { headers: { 'if-none-match': header } })
      assert.equal(again.status, 304, `${path} ${header}`)
      assert.equal(again.headers.etag, etag)
      assert.equal(again.headers['cache-control'], first.headers['cache-control'])
    }
    assert.equal((await app.client.call(path, { headers: { 'if-none-match': '"x"' } })).status, 200)
  }
})

test('the document of a model is what is enforced, under both brands', async () => {
  const { json, text } = await app.client.call('/v2/models/fake/strict/openapi.json')
  assert.ok(text.endsWith('}\n'))
  assert.equal(json.openapi, '3.0.2')
  assert.equal(json.info.title, 'fake/strict')
  assert.match(json.info.version, /^[0-9a-f]{12}$/)
  const operation = json.paths['/v2/models/fake/strict'].post
  assert.equal(operation.operationId, 'runRouterModel')
  assert.equal(operation.summary, 'Run fake/strict synchronously.')
  const { schema } = operation.requestBody.content['application/json']
  assert.deepEqual(schema.required, ['prompt'])
  assert.deepEqual(schema.example, { prompt: 'x' })
  for (const brand of ['service', 'comfy']) {
    assert.equal(json[`x-${brand}-router-model-id`], 'fake/strict')
    assert.equal(json[`x-${brand}-input-schema-authored`], true)
    assert.equal(json[`x-${brand}-output-schema-authored`], false)
    assert.deepEqual(json[`x-${brand}-router-input-modalities`], ['text'])
  }
})

test('an unauthored model says so and takes any object', async () => {
  const { json } = await app.client.call('/v2/models/fake/direct/openapi.json')
  assert.equal(json['x-service-input-schema-authored'], false)
  const operation = json.paths['/v2/models/fake/direct'].post
  assert.deepEqual(operation.requestBody.content['application/json'].schema, {
    type: 'object',
    additionalProperties: true,
  })
  assert.deepEqual(operation.responses['200'].content, { '*/*': { schema: { type: 'string', format: 'binary' } } })
})

test('a model put before the position of a walk repeats nothing', async () => {
  const { json } = await app.client.call('/v2/models?limit=3')
  await using other = await startRouter({ models: [...MODELS, fakeModel('aaa/first')], provider: { name: 'fake' } })
  // Another service does not know the signature: nobody can begin a walk there.
  refusedWith(await other.client.call(`/v2/models?cursor=${json.next_cursor}`), 400, 'invalid_input')
})

test('the contract can be read as a page, without a key, and each page leads to the other', async () => {
  await using app = await startRouter({ account: { micros: 0 } })
  const page = await call(app.client.url, '/docs/router')
  assert.equal(page.status, 200)
  const spec = (await app.client.call('/v2/models/openapi.json')).json
  for (const path of Object.keys(spec.paths)) assert.ok(page.text.includes(path), path)
  for (const name of ['reject_unknown_fields', 'Idempotency-Key', 'If-None-Match'])
    assert.ok(page.text.includes(name), name)
  for (const [, target] of page.text.matchAll(/href="#([^"]+)"/g))
    assert.ok(page.text.includes(`id="${target}"`), target)
  assert.match(page.text, /href="[^"]+\/docs">Jobs API v2</)
  assert.match((await call(app.client.url, '/docs')).text, /href="[^"]+\/docs\/router">Model Router</)
})
