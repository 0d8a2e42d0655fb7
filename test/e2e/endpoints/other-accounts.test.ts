/**
 * Endpoints that an owner lets other accounts call: whom they exist for, who pays, and that nothing a caller can read tells of the workflow.
 * What a caller can read is taken from the contracts: every GET of every surface, with the ids of his run in every place.
 */
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { type SharedApp, startShared, type Tenant } from '../../support/app/start-shared.ts'
import { runInProcess } from '../../support/cli/in-process.ts'
import { call } from '../../support/clients/call.ts'
import { node } from '../../support/clients/checked-client.ts'
import { waitUntil } from '../../support/wait-until.ts'

const PRICES = JSON.stringify({ pools: { '*': { perSecondMicros: 0, minimumMicros: 1000, holdMicros: 5000 } } })
const DECLARATION = { only: true, inputs: { prompt: { from: '2.text', max_length: 20 } } }
const TEXT = node('FakeFile', { text: 'plain ', filename: 'note.txt', content_type: 'text/plain' })
const GRAPH_TEXT = {
  text: '{"1": {"class_type": "FakeSave"}}',
  filename: 'graph.json',
  content_type: 'application/json',
}
const HIDING = {
  '1': node('FakeLog', { text: 'hiddenmark is printed\n', times: 3 }),
  '2': TEXT,
  '3': node('FakeFile', GRAPH_TEXT),
  '4': node('FakeValue', { value: 'shown' }),
  '5': node('FakeSampler', { steps: 3 }),
}
const FAILING = { ...HIDING, '9': node('FakeFail') }
const GATED = { ...HIDING, '9': node('FakeGate') }
// Of the classes that engines have, whatever runs; of what the service offers; endless streams.
const NOT_OF_RUNS = /object_info|\/nodes$|openapi|\/docs|events|\/ws$|\/mcp|features|metrics|workers|engines/
const SPECS = ['jobs-v2', 'legacy-v1', 'console', 'images', 'replicate', 'router']

describe('an endpoint that another account may call', () => {
  let app: SharedApp
  let owner: Tenant
  let friend: Tenant
  let stranger: Tenant
  before(async () => {
    app = await startShared({ prices: PRICES, workers: '4' })
    owner = await app.account('acme', { creditFloorMicros: 0 })
    friend = await app.account('friend', { creditFloorMicros: 0 })
    stranger = await app.account('stranger', { creditFloorMicros: 0 })
    for (const { id } of [owner, friend, stranger])
      assert.equal((await app.admin('POST', `/accounts/${id}/grants`, { usd: '5' })).status, 201)
    for (const [name, file] of Object.entries({ hiding: HIDING, failing: FAILING, gated: GATED })) {
      const body = JSON.stringify({ name, file, declaration: DECLARATION, callers: ['friend'] })
      const made = await owner.call('/api/v2/endpoints', { method: 'POST', body })
      assert.equal(made.status, 201, made.text)
      assert.deepEqual(made.json.endpoint.callers, ['friend'])
    }
  })
  after(() => app[Symbol.asyncDispose]())

  const ENDPOINTS = '/api/v2/endpoints'
  const run = (tenant: Tenant, name: string, more: { wait?: boolean; key?: string; inputs?: object } = {}) =>
    tenant.call(`${ENDPOINTS}/${encodeURIComponent(name)}/runs`, {
      method: 'POST',
      headers: {
        ...(more.wait !== false && { prefer: 'wait=60' }),
        ...(more.key !== undefined && { 'idempotency-key': more.key }),
      },
      body: JSON.stringify({ inputs: more.inputs ?? { prompt: 'hello ' } }),
    })
  const atelier = (tenant: Tenant, ...args: string[]) =>
    runInProcess(args, { cwd: '.', env: { ATELIER_BASE_URL: app.url, ATELIER_TOKEN: tenant.key } })
  const patch = (name: string, body: object) =>
    owner.call(`${ENDPOINTS}/${name}`, { method: 'PATCH', body: JSON.stringify(body) })
  const balanceOf = async ({ id }: Tenant) =>
    Number((await app.admin('GET', `/accounts/${id}`)).json.balance.available_usd)

  test('runs as a job of the caller, at the cost and within the limits of the caller', async () => {
    const before = await Promise.all([owner, friend].map(balanceOf))
    const { status, json } = await run(friend, 'acme/hiding')
    assert.deepEqual([status, json.status, json.endpoint], [200, 'succeeded', { name: 'acme/hiding', version: 1 }])
    assert.equal((await friend.call(`/api/v2/jobs/${json.id}`)).status, 200)
    assert.equal((await owner.call(`/api/v2/jobs/${json.id}`)).status, 404)
    const after = await Promise.all([owner, friend].map(balanceOf))
    assert.deepEqual([after[0] === before[0], after[1] < before[1]], [true, true])
    const listed = await friend.call(`${ENDPOINTS}/acme%2Fhiding/runs`)
    assert.deepEqual(
      listed.json.runs.map(({ id }: { id: string }) => id),
      [json.id],
    )
    assert.deepEqual((await owner.call(`${ENDPOINTS}/hiding/runs`)).json.runs, [])
    const told = await friend.call(`${ENDPOINTS}/acme%2Fhiding/runs/${json.id}`)
    assert.deepEqual([told.status, told.json.inputs], [200, { prompt: 'hello ' }])
    const outputs = json.outputs.map(({ name }: { name: string }) => name)
    assert.deepEqual(outputs, ['note.txt', '4_text_1.txt'], 'what may hold the workflow is left out')
    const { pathname, search } = new URL(json.outputs[0].url, app.url)
    assert.ok((await friend.call(pathname + search)).status < 400)
    const log = await friend.call(`/api/v2/jobs/${json.id}/logs`)
    assert.match(log.text, /1 of the files/)
  })

  test('is listed to whoever may call it, page by page, and to a key for some endpoints among those', async () => {
    const listed = async (tenant: Pick<Tenant, 'call'>, query = '') =>
      (await tenant.call(`${ENDPOINTS}?shared=true${query}`)).json
    const namesOf = ({ endpoints }: { endpoints: readonly { name: string }[] }) => endpoints.map(({ name }) => name)
    const all = await listed(friend)
    assert.deepEqual([namesOf(all), all.has_more], [['acme/failing', 'acme/gated', 'acme/hiding'], false])
    const [first] = all.endpoints
    assert.deepEqual([first.owner, first.callers, first.deployment], ['other_account', [], null])
    assert.equal((await friend.call(new URL(first.urls.self).pathname)).json.name, 'acme/failing')
    assert.deepEqual(namesOf(await listed(friend, '&limit=1&after=acme/failing')), ['acme/gated'])
    assert.equal((await listed(friend, '&limit=2')).has_more, true)
    assert.deepEqual([namesOf(await listed(stranger)), namesOf(await listed(owner))], [[], []])
    const key = await app.admin('POST', '/accounts/friend/keys', {
      endpoints: ['acme/hiding@1', 'acme/none', 'hiding'],
    })
    const headers = { authorization: `Bearer ${key.json.text}` }
    const some = await call(app.url, `${ENDPOINTS}?shared=true`, { headers })
    assert.deepEqual(namesOf(some.json), ['acme/hiding'])
    assert.equal((await friend.call(`${ENDPOINTS}?shared=yes`)).status, 400)
    const { stdout } = await atelier(friend, 'endpoints', 'list', '--shared', '--json')
    assert.deepEqual(namesOf(JSON.parse(stdout)), namesOf(all))
  })

  test('is the same as one that does not exist for everybody else, in every operation', async () => {
    const paths = [
      '',
      '/schema',
      '/openapi.json',
      '/docs',
      '/runs',
      '/versions',
      '/export',
      '/usage',
      '/compare?from=1&to=1',
    ]
    for (const path of paths) {
      const [theirs, nobodys] = await Promise.all(
        ['acme%2Fhiding', 'acme%2Fnothing'].map((name) => stranger.call(`${ENDPOINTS}/${name}${path}`)),
      )
      assert.deepEqual([theirs?.status, theirs?.text], [404, nobodys?.text], path)
    }
    for (const name of [
      'acme/hiding',
      'acme/nothing',
      'nobody/hiding',
      'acme/hiding@1',
      'acme//hiding',
      '/hiding',
      'ACME/hiding',
    ])
      assert.equal((await run(stranger, name)).status, 404, name)
    assert.equal((await run(friend, 'hiding')).status, 404)
  })

  test('shows a caller what it takes and gives, and nothing of its making to change, export or compare', async () => {
    const shown = (await friend.call(`${ENDPOINTS}/acme%2Fhiding`)).json
    assert.deepEqual(
      [shown.name, shown.owner, shown.callers, shown.deployment],
      ['acme/hiding', 'other_account', [], null],
    )
    const schema = (await friend.call(`${ENDPOINTS}/acme%2Fhiding/schema`)).json
    assert.deepEqual(Object.keys(schema.properties), ['prompt'])
    const version = (await friend.call(`${ENDPOINTS}/acme%2Fhiding/versions/1`)).json
    assert.deepEqual(Object.keys(version).sort(), [
      ...['created_at', 'created_by', 'hash', 'inputs', 'note', 'outputs', 'version'],
    ])
    const [input] = version.inputs
    assert.deepEqual(
      [input.name, input.places, Object.keys(version.outputs[0])],
      ['prompt', [], ['name', 'title', 'kind']],
    )
    const shownAs = await atelier(friend, 'endpoints', 'show', 'acme/hiding')
    assert.match(shownAs.stdout, /^prompt +text/m)
    const document = (await friend.call(`${ENDPOINTS}/acme%2Fhiding/openapi.json`)).json
    assert.ok(document.paths[`${ENDPOINTS}/acme%2Fhiding/runs`])
    for (const path of ['/versions', '/export', '/usage', '/shares', '/compare?from=1&to=1'])
      assert.equal((await friend.call(`${ENDPOINTS}/acme%2Fhiding${path}`)).status, 404, path)
    for (const [method, path] of [
      ['PATCH', ''],
      ['DELETE', ''],
      ['POST', '/versions'],
      ['PUT', '/aliases/x'],
      ['POST', '/shares'],
    ] as const) {
      const body = method === 'DELETE' ? undefined : '{"title": "mine"}'
      const { status } = await friend.call(`${ENDPOINTS}/acme%2Fhiding${path}`, { method, ...(body && { body }) })
      assert.ok(status === 404 || status === 422 || status === 400, `${method} ${path}: ${status}`)
    }
    assert.equal((await owner.call(`${ENDPOINTS}/hiding`)).json.title, 'hiding')
  })

  test('tells nothing of its workflow in anything that its caller can read of a run, while it waits, runs, fails and succeeds', async () => {
    const failed = await run(friend, 'acme/failing')
    assert.equal(failed.json.status, 'failed')
    const ended = await run(friend, 'acme/hiding')
    const running = await run(friend, 'acme/gated', { wait: false })
    await waitUntil(async () => (await friend.call(`/api/v2/jobs/${running.json.id}`)).json.status === 'running')
    const [output] = ended.json.outputs
    for (const id of [running.json.id, failed.json.id, ended.json.id])
      for (const path of await readable(id, output.id)) {
        const { text } = await friend.call(path)
        assert.doesNotMatch(text, /Fake[A-Z]|hiddenmark/, `${path}: ${text.slice(0, 2000)}`)
      }
    const own = await run(owner, 'hiding')
    const telling = await Promise.all(
      (await readable(own.json.id, own.json.outputs[0].id)).map((path) => owner.call(path)),
    )
    assert.ok(
      telling.filter(({ text }) => /Fake[A-Z]|hiddenmark/.test(text)).length >= 8,
      'the search finds what there is',
    )
    const tried = (tenant: Tenant, name: string) =>
      tenant.call(`${ENDPOINTS}/${name}/runs/validate`, {
        ...{ method: 'POST', body: '{"inputs": {"prompt": "a"}, "reuse": "exact"}' },
      })
    const dry = await tried(friend, 'acme%2Fhiding')
    assert.deepEqual([dry.json.is_accepted, dry.json.needs, dry.json.missing], [true, null, null], dry.text)
    assert.doesNotMatch(dry.text, /Fake[A-Z]|node \d/)
    assert.match((await tried(owner, 'hiding')).text, /FakeSampler/)
    const workflow = await friend.call(`/api/v2/jobs/${ended.json.id}/workflow`)
    assert.deepEqual([workflow.status, workflow.json.error.code], [403, 'forbidden'])
    const again = await friend.call(`/console/v1/jobs/${ended.json.id}/rerun`, { method: 'POST', body: '{}' })
    assert.ok(again.status >= 400)
    app.engine.openGate()
    await waitUntil(async () => (await friend.call(`/api/v2/jobs/${running.json.id}`)).json.status === 'succeeded')
  })

  test('has the limits of its owner for each account by itself, and the price that operators gave it', async () => {
    assert.equal((await patch('hiding', { limits: { runs: { ever: 2 } } })).status, 200)
    const statuses: number[] = []
    for (const _ of [1, 2, 3]) statuses.push((await run(friend, 'acme/hiding', { wait: false })).status)
    assert.deepEqual(statuses, [201, 201, 429])
    assert.equal((await run(owner, 'hiding', { wait: false })).status, 201)
    await patch('hiding', { limits: null })
    const priced = await app.admin('PUT', '/accounts/acme/endpoints/hiding/price', { kind: 'per_run', usd: '0.25' })
    assert.equal(priced.status, 200, priced.text)
    const before = await balanceOf(friend)
    assert.equal((await run(friend, 'acme/hiding')).json.status, 'succeeded')
    const spent = before - (await balanceOf(friend))
    // Others of its runs have ended meanwhile, for a tenth of a cent each.
    assert.ok(spent > 0.24 && spent < 0.28, String(spent))
  })

  test('tells its owner how many runs others made of it and what they cost, and nothing else of them', async () => {
    const usageOf = async (query: string) => (await owner.call(`${ENDPOINTS}/hiding/usage?${query}`)).json
    const own = await usageOf('of=own')
    const none = await usageOf('of=others')
    const usd = async () => Number((await usageOf('of=others')).total.usd)
    assert.equal((await run(friend, 'acme/hiding', { inputs: { prompt: 'unseen ' } })).json.status, 'succeeded')
    await waitUntil(async () => (await usd()) > Number(none.total.usd))
    const told = await owner.call(`${ENDPOINTS}/hiding/usage?of=others&by=version`)
    const { total, rows, limits, of } = told.json
    assert.deepEqual([total.runs - none.total.runs, total.succeeded - none.total.succeeded, of], [1, 1, 'others'])
    assert.equal(rows[0].key, '1')
    assert.deepEqual(limits, { in_flight: null, runs: {}, spend_usd: {} })
    assert.doesNotMatch(told.text, /unseen|friend/)
    assert.deepEqual((await usageOf('of=own')).total, own.total)
    assert.equal((await friend.call(`${ENDPOINTS}/acme%2Fhiding/usage?of=others`)).status, 404)
    assert.equal((await owner.call(`${ENDPOINTS}/hiding/usage?of=all`)).status, 400)
    const said = await atelier(owner, 'endpoints', 'usage', 'hiding', '--others', '--by', 'version', '--json')
    assert.deepEqual(JSON.parse(said.stdout).total, total)
  })

  test('is gone for its callers as soon as its owner says so, and its runs stay theirs', async () => {
    const made = await run(friend, 'acme/failing')
    assert.equal((await patch('failing', { callers: [] })).status, 200)
    assert.equal((await run(friend, 'acme/failing')).status, 404)
    assert.equal((await friend.call(`/api/v2/jobs/${made.json.id}`)).json.status, 'failed')
    assert.equal((await patch('failing', { callers: ['*'] })).status, 200)
    assert.equal((await run(stranger, 'acme/failing')).json.status, 'failed')
    for (const callers of [['Not an id'], ['a/b'], ['a', 'a'], Array.from({ length: 1001 }, (_, index) => `a${index}`)])
      assert.ok((await patch('failing', { callers })).status >= 400)
  })

  test('is reached by a key that names it with its owner, and by no key that names others', async () => {
    const keyFor = async (endpoints: readonly string[]) => {
      const made = await app.admin('POST', '/accounts/friend/keys', { endpoints })
      assert.equal(made.status, 201, made.text)
      return made.json.text as string
    }
    const asked = async (key: string) =>
      (
        await call(app.url, `${ENDPOINTS}/acme%2Fgated/runs/validate`, {
          ...{ method: 'POST', headers: { authorization: `Bearer ${key}` }, body: '{"inputs": {"prompt": "a"}}' },
        })
      ).status
    assert.deepEqual(
      await Promise.all(
        [['acme/gated'], ['acme/gated@1'], ['gated'], ['acme/hiding']].map(async (names) => asked(await keyFor(names))),
      ),
      [200, 200, 404, 404],
    )
  })

  test('is called by clients that are written for it', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'atelier-others-'))
    try {
      const file = path.join(folder, 'client.ts')
      const written = await atelier(friend, 'endpoints', 'client', 'acme/hiding', '--version', '1', '--out', file)
      assert.equal(written.code, 0, written.stderr)
      const client = await import(pathToFileURL(file).href)
      const options = { baseUrl: app.url, token: friend.key }
      const { id, status, inputs, results } = await client.run({ prompt: 'typed ' }, options)
      assert.deepEqual([status, inputs.prompt, Object.keys(results).length > 0], ['succeeded', 'typed ', true])
      assert.equal((await client.getRun(id, options)).endpoint.name, 'acme/hiding')
      await assert.rejects(client.run({ prompt: 'typed ' }, { ...options, token: stranger.key }), { status: 404 })
      const python = await atelier(friend, 'endpoints', 'client', 'acme/hiding', '--lang', 'python')
      assert.match(python.stdout, /^ENDPOINT = "acme%2Fhiding"$/m)
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  test('is called through the doors of other services under the same name', async () => {
    assert.equal((await patch('hiding', { callers: ['friend'] })).status, 200)
    const body = JSON.stringify({ input: { prompt: 'door ' } })
    const headers = { prefer: 'wait' }
    const predict = (account: string) =>
      friend.call(`/replicate/v1/models/${account}/hiding/predictions`, { method: 'POST', headers, body })
    const { json } = await predict('acme')
    assert.deepEqual([json.status, json.model], ['succeeded', 'acme/hiding'])
    assert.equal((await friend.call(`/replicate/v1/predictions/${json.id}`)).json.model, 'acme/hiding')
    assert.equal((await predict('stranger')).status, 404)
    const version = async (tenant: Tenant, given: string) => {
      const asked = JSON.stringify({ version: given, input: { prompt: 'hash ' } })
      return tenant.call('/replicate/v1/predictions', { method: 'POST', headers, body: asked })
    }
    const hash = json.version
    for (const given of [hash, `acme/hiding:${hash}`, `acme/hiding:1`, 'acme/hiding@1']) {
      const made = await version(friend, given)
      assert.deepEqual(
        [made.json.status, made.json.model, made.json.version],
        ['succeeded', 'acme/hiding', hash],
        given,
      )
      assert.equal((await version(stranger, given)).status, 404, given)
    }
    const shown = `/replicate/v1/models/acme/hiding/versions/${hash}`
    assert.equal((await friend.call(shown)).json.id, hash)
    assert.equal((await stranger.call(shown)).status, 404)
    const key = await app.admin('POST', '/accounts/friend/keys', { endpoints: ['acme/gated'] })
    const other = await call(app.url, shown, { headers: { authorization: `Bearer ${key.json.text}` } })
    assert.equal(other.status, 404)
    assert.equal((await friend.call('/v1/models/acme%2Fhiding')).json.id, 'acme/hiding')
    assert.equal((await stranger.call('/v1/models/acme%2Fhiding')).status, 404)
  })

  test('never stands in for a model of the catalogue, whatever its owner is called', async () => {
    const namesake = await app.account('sandbox')
    const body = JSON.stringify({ name: 'image', file: HIDING, declaration: DECLARATION, callers: ['*'] })
    assert.equal((await namesake.call('/api/v2/endpoints', { method: 'POST', body })).status, 201)
    const asked = JSON.stringify({ model: 'sandbox/image', prompt: 'a fox', size: '64x32' })
    const { status, json } = await friend.call('/v1/images/generations', { method: 'POST', body: asked })
    assert.deepEqual([status, json.size], [200, '64x32'])
    assert.deepEqual((await friend.call(`${ENDPOINTS}/sandbox%2Fimage/runs`)).json.runs, [])
    const key = await app.admin('POST', '/accounts/friend/keys', { scopes: ['endpoints:run'] })
    const headers = { authorization: `Bearer ${key.json.text}` }
    const refused = await call(app.url, '/v1/images/generations', { method: 'POST', headers, body: asked })
    assert.deepEqual([refused.status, refused.json.error.code], [404, 'model_not_found'])
    assert.equal((await call(app.url, '/v1/models/sandbox%2Fimage', { headers })).status, 404)
    // The account's own still may.
    const mine = JSON.stringify({ name: 'mine', file: HIDING, declaration: DECLARATION, models: ['sandbox/image'] })
    assert.equal((await friend.call('/api/v2/endpoints', { method: 'POST', body: mine })).status, 201)
    const plain = JSON.stringify({ model: 'sandbox/image', prompt: 'a fox' })
    await friend.call('/v1/images/generations', { method: 'POST', body: plain })
    assert.equal((await friend.call(`${ENDPOINTS}/mine/runs`)).json.runs.length, 1)
    assert.equal((await friend.call(`${ENDPOINTS}/mine`, { method: 'DELETE' })).status, 204)
    assert.equal((await namesake.call(`${ENDPOINTS}/image`, { method: 'DELETE' })).status, 204)
  })

  test('is not there while its owner may do nothing', async () => {
    assert.equal((await app.admin('PATCH', '/accounts/acme', { status: 'suspended' })).status, 200)
    await waitUntil(async () => (await run(friend, 'acme/hiding', { wait: false })).status === 404)
    assert.deepEqual((await friend.call(`${ENDPOINTS}?shared=true`)).json.endpoints, [])
    assert.equal((await app.admin('PATCH', '/accounts/acme', { status: 'active' })).status, 200)
  })
})

/** Every GET of every contract, with the ids of a run in its places. */
async function readable(jobId: string, assetId: string): Promise<string[]> {
  const paths = new Set<string>()
  for (const name of SPECS) {
    const spec = JSON.parse(await readFile(new URL(`../../../spec/${name}.openapi.json`, import.meta.url), 'utf8'))
    for (const [path, methods] of Object.entries(spec.paths)) {
      const { get } = methods as { readonly get?: object }
      if (get === undefined || NOT_OF_RUNS.test(path) || /event-stream/.test(JSON.stringify(get))) continue
      for (const id of [jobId, assetId])
        paths.add(path.replaceAll('{name}', 'acme%2Fhiding').replaceAll(/\{[^}]*\}/g, id))
    }
  }
  const search = ['class=FakeSampler', 'class=FakeLog', 'text=hiddenmark', 'text=FakeLog'].map(
    (query) => `/console/v1/jobs?${query}`,
  )
  return [...paths, ...search]
}
