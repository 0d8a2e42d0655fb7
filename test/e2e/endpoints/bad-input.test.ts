/**
 * Files that are made to break a publish, each in its own way, and names that mean something else: what is wrong is said in words, with
 * the place, and what is published can be called as its own document says.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type JsonValue, stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import { LOCAL_ACCOUNT_ID } from '../../../src/domain/accounts/account.ts'
import { DEFAULT_SETTINGS } from '../../../src/domain/endpoints/endpoint.ts'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { type Answer, call } from '../../support/clients/call.ts'
import { CheckedClient } from '../../support/clients/checked-client.ts'
import { drawnCases } from '../../support/drawn-cases.ts'
import { card } from '../../support/endpoints/card.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { HARD_FILES } from '../../support/workflows/hard-files.ts'
import { DECLARATIONS, MEGABYTE, many, SHAPES, TEXTS } from '../../support/workflows/hostile-shapes.ts'

// Far above what any of them takes: one that hangs is found, one that is slow is not.
const HANGS_MS = 300_000

describe('a hostile file', { timeout: HANGS_MS }, () => {
  let service: TestApp
  let client: CheckedClient
  before(async () => {
    service = await startTestApp({ settings: { workers: '1' } })
    client = new CheckedClient(service.url)
  })
  after(() => service[Symbol.asyncDispose]())

  const post = (path: string, body: string) => client.call(`/api/v2/endpoints${path}`, { method: 'POST', body })

  function mustSay(what: string, { status, json, text: said }: Answer): void {
    assert.ok(status >= 400 && status < 500, `${what}: ${status} ${said.slice(0, 500)}`)
    const { code, message, details } = json.error
    const where = `${what}: ${said.slice(0, 1_000)}`
    assert.match(code, /^(?:invalid_\w+|body_too_large|payload_too_large|too_large)$/, where)
    assert.ok(message.length > 10 && message.length < 4_000, where)
    assert.doesNotMatch(message, /undefined|\[object|Cannot |is not a function|at .*\.ts:/, where)
    if (code === 'invalid_workflow') assert.ok(typeof details?.node_errors === 'object', where)
    if (code === 'invalid_field') assert.equal(typeof details?.field, 'string', where)
    assert.ok(said.length < 2 * MEGABYTE, `${what}: a refusal of ${said.length} bytes`)
  }

  let published = 0
  async function mustHold(what: string, file: string, declaration: JsonValue = null): Promise<'published' | 'refused'> {
    const said = declaration === null ? '' : `,"declaration":${JSON.stringify(declaration)}`
    const preview = await post('/preview', `{"file":${file}${said}}`)
    if (preview.status !== 200) mustSay(`preview of ${what}`, preview)
    const name = `h-${published++}`
    const made = await post('', `{"name":"${name}","file":${file}${said}}`)
    if (made.status !== 201) {
      mustSay(`publish of ${what}`, made)
      return 'refused'
    }
    assert.equal(preview.status, 200, `${what} is published and has no preview: ${preview.text.slice(0, 500)}`)
    const document = await client.call(`/api/v2/endpoints/${name}/openapi.json`)
    assert.equal(document.status, 200, document.text)
    const { post: operation } = document.json.paths[`/api/v2/endpoints/${name}/runs`]
    const example = operation.requestBody.content['application/json'].examples.example.value
    const run = await post(`/${name}/runs`, JSON.stringify(example))
    if (run.status === 201) await client.cancel(run.json.id)
    else mustSay(`a call of ${what}`, run)
    const page = await client.call(`/api/v2/endpoints/${name}/docs`)
    assert.equal(page.status, 200, `the page of ${what}`)
    assert.equal((await client.call(`/api/v2/endpoints/${name}`, { method: 'DELETE' })).status, 204)
    return 'published'
  }

  test('is refused in words, or becomes an endpoint that its own example can call', async () => {
    const random = seededRandom(37)
    const outcomes = { published: 0, refused: 0 }
    const shapes = [
      ...Object.entries(SHAPES).map(([name, make]) => [name, () => stringifyLosslessJson(make(random))] as const),
      ...Object.entries(TEXTS).map(([name, make]) => [name, () => make(random)] as const),
    ]
    for (let time = 0; time < drawnCases(1); time++)
      for (const [name, make] of shapes) {
        const declaration = random.next() < 0.3 ? random.pick(DECLARATIONS) : null
        outcomes[await mustHold(`${name} (${time})`, make(), declaration)]++
      }
    assert.ok(outcomes.published > shapes.length / 4 && outcomes.refused > shapes.length / 4, JSON.stringify(outcomes))
  })

  test('of a megabyte that is made to be slow is refused, or published', async () => {
    const random = seededRandom(3)
    const names = Object.keys(HARD_FILES)
    for (let time = 0; time < drawnCases(1); time++) {
      const name = random.pick(names)
      await mustHold(name, stringifyLosslessJson(HARD_FILES[name]()))
    }
  })
})

describe('names and numbers of endpoints', { timeout: HANGS_MS }, () => {
  let service: TestApp
  let client: CheckedClient
  before(async () => {
    service = await startTestApp({ settings: { workers: '1' } })
    client = new CheckedClient(service.url)
  })
  after(() => service[Symbol.asyncDispose]())

  const publish = (name: JsonValue, file: object = card('a')) =>
    client.call('/api/v2/endpoints', { method: 'POST', body: JSON.stringify({ name, file }) })

  test('a name that means something else in addresses is refused, and every other one leads to its endpoint', async () => {
    const wrong = [
      'preview',
      'docs',
      'import',
      'openapi',
      'runs',
      'versions',
      'openapi.json',
      'a@1',
      'a%2Fb',
      'a/b',
      '..',
      '.',
      '',
    ]
    for (const name of [
      ...wrong,
      'Card',
      'CARD',
      'a_b',
      '-a',
      'a-',
      'a'.repeat(64),
      'ｃard',
      'с',
      'a b',
      'a\n',
      '__proto__',
      7,
      null,
    ]) {
      const refused = await publish(name)
      assert.equal(refused.status, 422, `${JSON.stringify(name)}: ${refused.text}`)
      assert.match(refused.json.error.message, /name/)
    }
    for (const name of [
      'batch',
      'validate',
      'schema',
      'compare',
      'constructor',
      'latest',
      'health',
      'jobs',
      '0',
      'a'.repeat(63),
    ]) {
      const made = await publish(name)
      assert.equal(made.status, 201, made.text)
      for (const at of ['', '/schema', '/openapi.json', '/docs', '/versions', '/versions/latest'])
        assert.equal((await client.call(`/api/v2/endpoints/${name}${at}`)).status, 200, name + at)
      const { json } = await client.call(`/api/v2/endpoints/${name}`)
      assert.equal(json.name, name)
      const run = await client.call(`/api/v2/endpoints/${name}/runs`, { method: 'POST', body: '{}' })
      assert.deepEqual([run.status, run.json.endpoint], [201, { name, version: 1 }])
    }
    for (const path of ['..%2Fjobs', '%2e%2e', 'a%2Fb', 'CARD', 'a'.repeat(5_000), '%00', '%ff', '__proto__'])
      for (const [method, at] of [
        ['GET', ''],
        ['POST', '/runs'],
        ['DELETE', ''],
      ] as const) {
        const answer = await client.call(`/api/v2/endpoints/${path}${at}`, {
          method,
          ...(method === 'POST' && { body: '{}' }),
        })
        assert.ok(answer.status >= 400 && answer.status < 500, `${method} ${path}${at}: ${answer.status}`)
      }
  })

  test('many endpoints, with long texts and many models, keep every list within bounds', async () => {
    const { endpoints } = service.app.store
    const key = { accountId: LOCAL_ACCOUNT_ID, name: 'long' }
    for (const [name, length] of [
      ['long', 300_000],
      ['short', 1],
    ] as const)
      assert.equal((await publish(name, card('x'.repeat(length)))).status, 201)
    const [long, short] = await Promise.all(['long', 'short'].map((name) => endpoints.findVersion({ ...key, name }, 1)))
    assert.ok(long !== null && short !== null)
    const add = (index: number) =>
      endpoints.publish({
        ...{
          accountId: LOCAL_ACCOUNT_ID,
          name: `many-${String(index).padStart(5, '0')}`,
          revision: null,
          limit: 10_000,
        },
        texts: { settings: { ...DEFAULT_SETTINGS, models: many(20, (each) => `model-${index}-${each}`) } },
        version: index < 25 ? long : short,
      })
    for (let start = 0; start < 1_000; start += 200) await Promise.all(many(200, (index) => add(start + index)))

    const read = async (path: string, most: number) => {
      const answer = await call(service.url, path)
      assert.equal(answer.status, 200, `${path}: ${answer.text.slice(0, 500)}`)
      assert.ok(answer.text.length < most, `${path} is ${answer.text.length} long`)
      return answer.json
    }
    const { info, paths } = await read('/api/v2/endpoints/openapi.json', 6 * MEGABYTE)
    assert.match(info.description, /^Only \d+ endpoints are described here/)
    assert.ok(
      paths['/api/v2/endpoints/many-00050/runs'] !== undefined && paths['/api/v2/endpoints/long/runs'] === undefined,
    )
    await read('/api/v2/endpoints/docs', 12 * MEGABYTE)
    await read('/api/v2/endpoints?limit=100', MEGABYTE)
    const { data } = await read('/v1/models', 3 * MEGABYTE)
    const ids = new Set(data.map(({ id }: { id: string }) => id))
    assert.deepEqual([data.length, ids.size], [10_000, 10_000])
    assert.ok(ids.has('many-00999'))
    await read('/v1/models/model-999-19', 1_000)
    await read('/v2/models?limit=100', MEGABYTE)
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }
    const headers = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' }
    const tools = await call(service.url, '/mcp', { method: 'POST', headers, body: JSON.stringify(list) })
    assert.equal(tools.status, 200, tools.text.slice(0, 500))
    assert.ok(tools.text.length < 20 * MEGABYTE, `${tools.text.length} characters of tools`)
    assert.equal((await publish('one-more')).status, 201)
  })
})
