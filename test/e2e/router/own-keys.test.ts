/** Own keys of accounts at providers where there is nothing to seal them with, or no longer the same. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { startTestApp } from '../../support/app/start-app.ts'
import { call } from '../../support/clients/call.ts'
import { openaiFake } from '../../support/providers/fake-providers/direct.ts'
import { startFakeProvider } from '../../support/providers/fake-providers/fake-card.ts'

const KEYS_PATH = '/api/v2/provider-keys'
const ask = (url: string, method: string, at: string, body?: object) =>
  call(url, at, {
    method,
    headers: { 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })

test('a key is kept only where it can be sealed, and one that does not open stops its calls instead of lending another', async () => {
  await using stack = new AsyncDisposableStack()
  const folder = await mkdtemp(path.join(tmpdir(), 'atelier-test-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  const fake = stack.use(await startFakeProvider(openaiFake))
  const providers = path.join(folder, 'providers.json')
  await writeFile(providers, JSON.stringify({ openai: { key: openaiFake.key, base_url: fake.baseUrl } }))
  const dataDir = path.join(folder, 'data')
  const start = (seal: string | null) =>
    startTestApp({
      ...{ dataDir, settings: { providers } },
      ...(seal !== null && { env: { ATELIER_SECRET_KEY: seal } }),
    })
  const run = (url: string) => ask(url, 'POST', '/v2/models/openai/gpt-image-1', { prompt: 'a fox' })
  const own = 'sk-another-key-of-the-account'

  const unsealed = await start(null)
  const refused = await ask(unsealed.url, 'PUT', `${KEYS_PATH}/openai`, { key: own })
  assert.equal(refused.status, 403)
  assert.match(refused.json.error.message, /has no ATELIER_SECRET_KEY to seal them with/)
  assert.equal((await run(unsealed.url)).status, 200)
  await unsealed.app[Symbol.asyncDispose]()

  const sealed = await start('ab'.repeat(32))
  const saved = await ask(sealed.url, 'PUT', `${KEYS_PATH}/openai`, { key: own })
  assert.deepEqual([saved.status, saved.json.last_four, saved.json.status], [200, 'ount', 'ready'])
  const wrong = await run(sealed.url)
  assert.deepEqual([wrong.status, wrong.headers['x-comfy-upstream-status']], [502, '401'])
  assert.match(wrong.json.detail, /^your openai key was refused/)
  const probe = await ask(sealed.url, 'POST', `${KEYS_PATH}/openai/test`)
  assert.deepEqual([probe.json.result, probe.json.upstream_status], ['unclear', 404])
  await sealed.app[Symbol.asyncDispose]()

  fake.reset('success')
  const other = stack.use(await start('cd'.repeat(32)))
  const { provider_keys: keys } = (await ask(other.url, 'GET', KEYS_PATH)).json
  assert.deepEqual([keys[0].provider, keys[0].status], ['openai', 'unreadable'])
  const unread = await run(other.url)
  assert.equal(unread.status, 502)
  assert.match(unread.json.detail, /your openai key cannot be used.*save it again/)
  assert.equal(fake.requests.length, 0)
  assert.equal((await ask(other.url, 'POST', `${KEYS_PATH}/openai/test`)).json.result, 'unreadable')
  assert.equal((await ask(other.url, 'DELETE', `${KEYS_PATH}/openai`)).status, 204)
  assert.equal((await run(other.url)).status, 200)
})
