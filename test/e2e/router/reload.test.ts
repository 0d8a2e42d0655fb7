import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { spawnServer } from '../../support/app/spawn-server.ts'
import { startRouter } from '../../support/app/start-router.ts'
import { runAtelier } from '../../support/cli/atelier.ts'
import { call } from '../../support/clients/call.ts'
import { RouterClient, refusedWith } from '../../support/clients/router-client.ts'
import { startHttpFake } from '../../support/providers/http-fake.ts'
import { waitUntil } from '../../support/wait-until.ts'

const echo = (name: string, fields: object = {}) =>
  JSON.stringify({ id: `sandbox/${name}`, price: { kind: 'free' }, adapter: { behaviour: 'echo' }, ...fields })

async function withFolder(
  body: (folder: string, put: (name: string, text: string) => Promise<void>) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'atelier-catalog-'))
  await mkdir(join(folder, 'sandbox'))
  try {
    await body(folder, (name, text) => writeFile(join(folder, 'sandbox', `${name}.json`), text))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

test('a new file is a new model without a restart; a wrong one changes nothing; calls under way go on', async () => {
  await withFolder(async (folder, put) => {
    await put('mine', echo('mine'))
    await using app = await startRouter({ settings: { catalogs: folder } })
    const { client, test: service } = app
    assert.equal((await client.run('sandbox/mine', { value: 1 })).status, 200)
    const running = client.run('sandbox/mine', { value: 'slow', latency_ms: 400 })
    await put('second', echo('second'))
    assert.equal((await service.app.reloadModels()).outcome, 'reloaded')
    assert.deepEqual((await client.run('sandbox/second', { value: 2 })).json, { output: 2 })
    await put('second', '{ "id": "sandbox/second", "price": {} , "surprise": 1 }')
    await put('third', echo('third'))
    const refused = await service.app.reloadModels()
    assert.equal(refused.outcome, 'refused')
    assert.equal((await client.run('sandbox/second', { value: 3 })).status, 200)
    refusedWith(await client.run('sandbox/third', {}), 404, 'model_not_found')
    assert.deepEqual((await running).json, { output: 'slow' })
  })
})

test('an operator exchanges the catalogue over the admin API, and is told what is wrong with a new one', async () => {
  await withFolder(async (folder, put) => {
    await put('mine', echo('mine'))
    await using app = await startRouter({ settings: { catalogs: folder, adminToken: 'admin-token-of-a-test' } })
    const reload = (token: string) =>
      call(app.client.url, '/admin/v1/models/reload', { method: 'POST', headers: { authorization: `Bearer ${token}` } })
    const running = app.client.run('sandbox/mine', { value: 'slow', latency_ms: 300 })
    await put('second', echo('second'))
    assert.equal((await reload('nonsense')).status, 401)
    const { status, json } = await reload('admin-token-of-a-test')
    assert.deepEqual([status, Object.keys(json)], [200, ['models']])
    assert.equal((await app.client.run('sandbox/second', { value: 2 })).status, 200)
    await put('second', echo('second', { returns: 'sometimes' }))
    const refused = await reload('admin-token-of-a-test')
    assert.equal(refused.status, 422)
    assert.match(refused.json.error.message, /sandbox\/second\.json: returns must be one of direct, poll/)
    assert.equal((await app.client.run('sandbox/second', { value: 3 })).status, 200)
    assert.deepEqual((await running).json, { output: 'slow' })
  })
})

const ACME = {
  provider: 'acme',
  title: 'Acme',
  base_url: 'https://api.acme.example',
  api_hosts: [],
  auth: [{ headers: { 'x-acme-key': '{key}' } }],
  concurrency: 4,
  outcomes: [],
  messages: ['message'],
}
const PAINTER = {
  id: 'acme/painter-1',
  input: { schema: { type: 'object', required: ['prompt'], properties: { prompt: { type: 'string' } } } },
  price: { kind: 'free' },
  adapter: { operations: [{ name: 'paint', path: '/v1/{model}', returns: 'json' }], assets: ['image'] },
}

test('a provider is added with two files and a key, and its key is changed, without a restart', async () => {
  const keys: unknown[] = []
  await using acme = await startHttpFake((request, response) => {
    keys.push(request.headers['x-acme-key'])
    response.setHeader('content-type', 'application/json').end('{"image":"eA=="}')
  })
  await withFolder(async (folder) => {
    const providers = join(folder, 'providers.json')
    const setKey = (key: string) => writeFile(providers, JSON.stringify({ acme: { key, base_url: acme.url } }))
    await writeFile(providers, '{}')
    await using app = await startRouter({ settings: { catalogs: folder, providers } })
    const reload = () => app.test.app.reloadModels()
    refusedWith(await app.client.run('acme/painter-1', { prompt: 'x' }), 404, 'model_not_found')
    await mkdir(join(folder, 'acme'))
    await writeFile(join(folder, 'acme', 'provider.json'), JSON.stringify(ACME))
    await writeFile(join(folder, 'acme', 'painter-1.json'), JSON.stringify(PAINTER))
    assert.equal((await reload()).outcome, 'reloaded')
    refusedWith(await app.client.run('acme/painter-1', { prompt: 'x' }), 403, 'not_enabled')
    await setKey('first-secret')
    assert.equal((await reload()).outcome, 'reloaded')
    assert.equal((await app.client.run('acme/painter-1', { prompt: 'x' })).status, 200)
    await setKey('second-secret')
    await reload()
    assert.equal((await app.client.run('acme/painter-1', { prompt: 'x' })).status, 200)
    await writeFile(providers, '{"acme": {"key": "third-secret", "base_url": 7}}')
    const refused = await reload()
    assert.equal(refused.outcome, 'refused')
    assert.match(JSON.stringify(refused), /base_url/)
    assert.doesNotMatch(JSON.stringify(refused), /secret/)
    assert.equal((await app.client.run('acme/painter-1', { prompt: 'x' })).status, 200)
    assert.deepEqual(keys, ['first-secret', 'second-secret', 'second-secret'])
  })
})

test('a generation under way is not lost with the file of its model: it is collected when the file is back', async () => {
  await withFolder(async (folder, put) => {
    const task = echo('mine', { returns: 'poll', adapter: { behaviour: 'task' } })
    await put('mine', task)
    const stored = Promise.withResolvers<void>()
    const first = await startRouter({
      settings: { catalogs: folder, drainTimeout: '0s' },
      overrides: {
        wrapCalls: (calls) => ({
          ...calls,
          async keepProgress(...progress) {
            const isHeld = await calls.keepProgress(...progress)
            stored.resolve()
            return isHeld
          },
        }),
      },
    })
    const send = (app: { client: RouterClient }) =>
      app.client.run('sandbox/mine', { value: 'paid', latency_ms: 3000 }, { key: 'k' })
    const running = send(first)
    await stored.promise
    await first.test.app.drain()
    refusedWith(await running, 503, 'service_unavailable')
    await rm(join(folder, 'sandbox', 'mine.json'))
    await using second = await first.restart()
    refusedWith(await send(second), 404, 'model_not_found')
    await put('mine', task)
    assert.equal((await second.test.app.reloadModels()).outcome, 'reloaded')
    const collected = await send(second)
    assert.deepEqual(
      [collected.json, collected.headers['idempotent-replayed']],
      [{ status: 'succeeded', output: 'paid' }, 'true'],
    )
  })
})

test('SIGHUP reads the catalogue again', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'atelier-test-'))
  try {
    await using server = await spawnServer(['--data-dir', dataDir, '--workers', '0'])
    // Nothing has changed, so that nothing but the signal can be the reason.
    process.kill(server.pid, 'SIGHUP')
    await waitUntil(() => server.output().includes('the model catalogue was reloaded'))
    assert.equal((await call(server.url, '/v2/models')).status, 200)
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
})

test('a changed file is noticed by itself', async () => {
  await withFolder(async (folder, put) => {
    await put('mine', echo('mine'))
    await using app = await startRouter({ settings: { catalogs: folder } })
    const client = new RouterClient(app.client.url)
    await put('watched', echo('watched'))
    await waitUntil(async () => (await client.call('/v2/models/sandbox/watched')).status === 200)
  })
})

test('lint names every mistake with its file and path, and fails', async () => {
  await withFolder(async (folder, put) => {
    await put('good', echo('good'))
    const good = await runAtelier(['models', 'lint', folder])
    assert.deepEqual([good.code, good.stderr], [0, ''])
    await put('bad', echo('other', { returns: 'sometimes', input: { schema: { type: 'nonsense' } } }))
    const bad = await runAtelier(['models', 'lint', folder])
    assert.equal(bad.code, 1)
    assert.match(bad.stderr, /sandbox\/bad\.json: returns must be one of direct, poll/)
    await put(
      'bad',
      echo('bad', { price: { parts: [{ unit: 'second', usd: '0.1', times: [{ usage: 's', fallback: 0, max: 9 }] }] } }),
    )
    const gift = await runAtelier(['models', 'lint', folder])
    assert.equal(gift.code, 1)
    assert.match(gift.stderr, /sandbox\/bad\.json: price\.parts let a call cost nothing/)
    const gone = await runAtelier(['models', 'lint', join(folder, 'nowhere')])
    assert.deepEqual([gone.code, /nowhere: there is no such folder/.test(gone.stderr)], [1, true])
    const list = await runAtelier(['models', 'list', '--catalogs', folder])
    assert.match(list.stdout, /^sandbox\/good +direct +released$/m)
  })
})
