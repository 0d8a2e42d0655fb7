/** A stream whose service is killed in the middle: one answer was made, nobody is charged for it, and nothing makes it again. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { spawnServer } from '../../support/app/spawn-server.ts'
import { findCompileCache } from '../../support/cli/compile-cache.ts'
import { call } from '../../support/clients/call.ts'
import { createTestDatabase } from '../../support/postgres/test-database.ts'
import { startChatFake } from '../../support/providers/chat-fake.ts'
import { waitUntil } from '../../support/wait-until.ts'

const ADMIN = 'admin-token-of-this-test'
const GRANT = 1_000_000_000

test('a stream that was cut off by the end of its service is not made again, and costs nothing', async () => {
  await using stack = new AsyncDisposableStack()
  const folder = await mkdtemp(path.join(tmpdir(), 'atelier-stream-'))
  stack.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }))
  const fake = stack.use(await startChatFake())
  const providers = path.join(folder, 'providers.json')
  await writeFile(providers, JSON.stringify({ openai: { key: 'sk', base_url: fake.url } }))
  const isPostgres = process.env['ATELIER_TEST_STORE'] === 'postgres'
  const database = isPostgres ? stack.use(await createTestDatabase()) : null
  const env = {
    ...findCompileCache(folder),
    ...{ ATELIER_ADMIN_TOKEN: ADMIN, ATELIER_PROVIDERS: providers, ATELIER_SECRET_KEY: 'ab'.repeat(32) },
    ...(database !== null && { ATELIER_DATABASE: database.url }),
  }
  const flags = ['--kind', 'cloud', '--workers', '0', '--data-dir', path.join(folder, 'data')]
  const first = await spawnServer(flags, env)
  const ofAdmin = (url: string, at: string, body?: object) =>
    call(url, `/admin/v1${at}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${ADMIN}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  await ofAdmin(first.url, '/accounts', { id: 'payer', limits: { requestsPerMinute: null } })
  await ofAdmin(first.url, '/accounts/payer/grants', { micros: GRANT })
  const { text: key } = (await ofAdmin(first.url, '/accounts/payer/keys', {})).json
  const ask = (url: string) =>
    fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'idempotency-key': 'once', 'content-type': 'application/json' },
      body: JSON.stringify({
        ...{ model: 'openai/gpt-5-mini', stream: true },
        messages: [{ role: 'user', content: 'gate of a garden' }],
      }),
    })

  const answer = await ask(first.url)
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader()
  await reader.read()
  await first.killNow()
  await assert.rejects(async () => {
    while (!(await reader.read()).done);
  })
  const next = await spawnServer(flags, env)
  stack.defer(() => next.killNow())
  fake.open()
  // Where processes share a store, the call is the dead one's until its lease is over.
  let told = await ask(next.url)
  await waitUntil(async () => {
    told = await ask(next.url)
    return told.status === 409 && !told.headers.has('retry-after')
  })
  assert.match(await told.text(), /cut off after it was sent/)
  assert.equal(fake.made.get('gate of a garden'), 1)
  const { balance } = (await ofAdmin(next.url, '/accounts/payer')).json
  assert.deepEqual([balance.available_micros, balance.held_micros], [GRANT, 0])
  assert.deepEqual((await ofAdmin(next.url, '/ledger/check')).json.faults, [])
})
