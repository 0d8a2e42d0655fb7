/**
 * Own keys of accounts at providers, over two services on one Postgres started as a user starts them: a key counts in both from the
 * answer that saved it on, calls with it cost nothing here, and its bytes are found nowhere that the services write.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { createClient } from '../../../lib/postgres/driver.ts'
import { type SpawnedServer, spawnServer } from '../../support/app/spawn-server.ts'
import { type Answer, call } from '../../support/clients/call.ts'
import { startTraceCollector, type TraceCollector } from '../../support/network/trace-collector.ts'
import { createTestDatabase } from '../../support/postgres/test-database.ts'
import { bflFake } from '../../support/providers/fake-providers/bfl.ts'
import { openaiFake } from '../../support/providers/fake-providers/direct.ts'
import {
  type FakeCard,
  type FakeProvider,
  startFakeProvider,
} from '../../support/providers/fake-providers/fake-card.ts'
import { waitUntil } from '../../support/wait-until.ts'

const ADMIN_TOKEN = 'admin-token-of-this-test'
const SEALS = ['ab'.repeat(32), 'cd'.repeat(32)]
const KEYS = { bfl: 'bfl-own-1-QjZkUnVx8sTq', next: 'bfl-own-2-HmPd7wKcYe3g', openai: 'sk-own-Zr5vNtLb4xWf9aJu' }
const FLUX = 'bfl/flux-2-pro'
const GPT = 'openai/gpt-image-1'
const GRAPH = {
  '1': { class_type: 'RunModel', inputs: { model: FLUX, input: '{"prompt": "a fox"}' } },
  '2': { class_type: 'PreviewAny', inputs: { source: ['1', 0] } },
}

/** Also takes these keys, and tells whoever asks about them. */
function toCard(card: FakeCard, header: string, texts: readonly string[], probe: RegExp): FakeCard {
  return {
    ...card,
    isKnown: (headers) => texts.some((text) => headers[header] === text) || card.isKnown(headers),
    routes: [...card.routes, ['GET', probe, () => ({ json: {} })]],
  }
}

describe('own keys of two services on one database', () => {
  const stack = new AsyncDisposableStack()
  const folder = mkdtempSync(path.join(tmpdir(), 'atelier-own-keys-'))
  const printed: string[] = []
  let flags: string[] = []
  let env: Record<string, string> = {}
  let services: SpawnedServer[] = []
  let collector: TraceCollector
  let bfl: FakeProvider
  let database = ''
  let key = ''

  const start = async (seals: string) =>
    stack.use(
      await spawnServer(flags, { ...env, ATELIER_SECRET_KEY: seals }, { onOutput: (text) => void printed.push(text) }),
    )

  before(async () => {
    stack.defer(() => rmSync(folder, { recursive: true, force: true }))
    const ownBfl = toCard(bflFake, 'x-key', [KEYS.bfl, KEYS.next], /^\/credits$/)
    const openai = stack.use(
      await startFakeProvider(toCard(openaiFake, 'authorization', [`Bearer ${KEYS.openai}`], /^\/models$/)),
    )
    bfl = stack.use(await startFakeProvider(ownBfl, { isReadable: true }))
    bfl.pendingPolls = 0
    const providers = path.join(folder, 'providers.json')
    const settings = {
      bfl: { key: bflFake.key, base_url: bfl.baseUrl },
      openai: { base_url: openai.baseUrl },
      '*': { allow_private_network: true },
    }
    writeFileSync(providers, JSON.stringify(settings))
    collector = stack.use(await startTraceCollector())
    database = stack.use(await createTestDatabase()).url
    flags = ['--kind', 'cloud', '--data-dir', path.join(folder, 'data'), '--workers', '1']
    env = {
      ...{ ATELIER_DATABASE: database, ATELIER_ADMIN_TOKEN: ADMIN_TOKEN, ATELIER_LOG_LEVEL: 'debug' },
      ATELIER_PROVIDERS: providers,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    }
    services = await Promise.all([1, 2].map(() => start(SEALS[0])))
    const admin = (at: string, body: object) =>
      call(services[0].url, `/admin/v1${at}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
        body: JSON.stringify(body),
      })
    await admin('/accounts', { id: 'owner', limits: { requestsPerMinute: null } })
    await admin('/accounts/owner/grants', { id: 'gift', usd: '1.00' })
    key = (await admin('/accounts/owner/keys', {})).json.text
    for (const service of [0, 1])
      await waitUntil(
        async () => (await ask(service, 'GET', '/api/v2/provider-keys')).status === 200 || null,
        () => 'the new API key in every service',
      )
  })
  after(() => stack.disposeAsync())

  const ask = (service: number, method: string, at: string, body?: object) =>
    call(services[service].url, at, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  const save = async (service: number, provider: string, text: string) => {
    const saved = await ask(service, 'PUT', `/api/v2/provider-keys/${provider}`, { key: text })
    assert.equal(saved.status, 200, saved.text)
    return saved
  }
  const run = (service: number, model = FLUX, suffix = '') =>
    ask(service, 'POST', `/v2/models/${model}${suffix}`, { prompt: 'a fox' })
  async function books() {
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` }
    const { balance, holds, entries } = (await call(services[0].url, '/admin/v1/accounts/owner', { headers })).json
    return { balance, holds, entries }
  }
  const keysSent = () =>
    new Set(bfl.requests.map(({ headers }) => headers['x-key']).filter((each) => each !== undefined))
  /** Which keys the provider saw in this work. */
  async function seen(work: () => Promise<Answer>) {
    bfl.reset('success')
    bfl.pendingPolls = 0
    const answer = await work()
    return { answer, keys: [...keysSent()] }
  }

  test('a key counts in both from the answer that saved it on, and so do its exchange and its removal', async () => {
    const before = await seen(() => run(1))
    assert.deepEqual([before.answer.status, before.keys], [200, [bflFake.key]], before.answer.text)
    assert.notEqual(before.answer.headers['x-comfy-credits-used'], undefined)
    for (const [at, text] of [KEYS.bfl, KEYS.next].entries()) {
      const saved = await save(at % 2, 'bfl', text)
      assert.equal(saved.json.last_four, text.slice(-4))
      for (const service of [1, 0]) {
        const { answer, keys } = await seen(() => run(service))
        assert.deepEqual([answer.status, keys], [200, [text]], answer.text)
        assert.equal(answer.headers['x-comfy-credits-used'], undefined)
      }
    }
    assert.equal((await ask(1, 'DELETE', '/api/v2/provider-keys/bfl')).status, 204)
    assert.equal((await ask(0, 'DELETE', '/api/v2/provider-keys/bfl')).status, 404)
    for (const service of [0, 1]) assert.deepEqual((await seen(() => run(service))).keys, [bflFake.key])
  })

  test('queued calls and nodes of workflows use it, and nothing is held or charged for any of them', async () => {
    await save(0, 'bfl', KEYS.next)
    const before = await books()
    const queued = await seen(async () => {
      const { json } = await run(1, FLUX, '/requests')
      return await waitUntil(
        async () => {
          const answer = await ask(0, 'GET', `/v2/models/${FLUX}/requests/${json.request_id}`)
          return answer.status === 202 ? null : answer
        },
        () => 'the end of a queued call',
      )
    })
    assert.deepEqual([queued.answer.status, queued.keys], [200, [KEYS.next]], queued.answer.text)
    const job = await seen(async () => {
      const { json } = await ask(0, 'POST', '/api/v2/jobs', { workflow: GRAPH, extra_data: { api_key_comfy_org: key } })
      return await waitUntil(
        async () => {
          const answer = await ask(1, 'GET', `/api/v2/jobs/${json.id}`)
          return ['queued', 'running'].includes(answer.json.status) ? null : answer
        },
        () => 'the end of a job',
      )
    })
    assert.deepEqual(job.keys, [KEYS.next], job.answer.text)
    assert.deepEqual(await books(), before)
  })

  test('a provider for which the service has no key runs with the own one alone', async () => {
    assert.equal((await run(0, GPT)).json.error_type, 'not_enabled')
    await save(1, 'openai', KEYS.openai)
    for (const service of [0, 1]) assert.equal((await run(service, GPT)).status, 200)
    const tested = await ask(0, 'POST', '/api/v2/provider-keys/openai/test')
    assert.deepEqual([tested.json.result, tested.json.upstream_status], ['works', 200])
  })

  test('a key that the provider refuses is told to be so, without the key and without falling back to another', async () => {
    const wrong = 'bfl-own-3-wrong-Tz6uQe2'
    await save(0, 'bfl', wrong)
    const { answer, keys } = await seen(() => run(1))
    assert.deepEqual([answer.status, answer.json.error_type, keys], [502, 'provider_error', [wrong]])
    assert.equal(answer.headers['x-comfy-upstream-status'], '403')
    assert.match(answer.json.detail, /^your bfl key was refused/)
    assert.equal(answer.text.includes(wrong), false)
    const tested = await ask(1, 'POST', '/api/v2/provider-keys/bfl/test')
    assert.deepEqual([tested.json.result, tested.json.upstream_status], ['refused', 403])
    await save(1, 'bfl', KEYS.bfl)
  })

  test('what is no key, or is for no provider, is refused without being repeated', async () => {
    const secret = 'not a key because of its blanks'
    const malformed = await ask(0, 'PUT', '/api/v2/provider-keys/bfl', { key: secret })
    assert.equal(malformed.status, 422)
    assert.equal(malformed.text.includes(secret), false)
    for (const provider of ['nobody', 'sandbox', 'local'])
      assert.equal((await ask(0, 'PUT', `/api/v2/provider-keys/${provider}`, { key: KEYS.bfl })).status, 404, provider)
    assert.equal((await ask(0, 'POST', '/api/v2/provider-keys/kling/test')).status, 404)
  })

  test('an exchanged sealing key opens what the former one sealed', async () => {
    await save(0, 'bfl', KEYS.bfl)
    await services[1].terminate()
    services[1] = await start(`${SEALS[1]},${SEALS[0]}`)
    assert.deepEqual((await seen(() => run(1))).keys, [KEYS.bfl])
  })

  test('no byte of a key is in the data folder, what was printed, the traces or the database', async () => {
    await waitUntil(
      () => collector.batches.length > 0 || null,
      () => 'spans',
    )
    const files = readdirSync(path.join(folder, 'data'), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(path.join(entry.parentPath, entry.name)))
    const tables = await readTables(database)
    assert.ok(tables.includes('provider_key.put'), 'the audit log was read')
    const places = {
      files: Buffer.concat(files),
      printed: Buffer.from(printed.join('')),
      traces: Buffer.from(collector.batches.map(({ text, headers }) => text + JSON.stringify(headers)).join('')),
      database: Buffer.from(tables),
    }
    for (const [place, bytes] of Object.entries(places)) {
      for (const secret of Object.values(KEYS)) {
        const shapes = [
          secret,
          Buffer.from(secret).toString('hex'),
          Buffer.from(secret).toString('base64').slice(0, 24),
        ]
        for (const shape of shapes) assert.equal(bytes.includes(shape), false, `${place} has a key as ${shape}`)
      }
    }
    assert.ok(places.printed.length > 1000 && places.traces.length > 1000)
  })
})

/** Every row of every table, as a dump would have it. */
async function readTables(url: string): Promise<string> {
  const client = createClient({ url })
  await client.connect()
  try {
    const { rows } = await client.query(
      `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
    )
    let text = ''
    for (const { name } of rows) {
      const found = await client.query(`SELECT whole::text AS line FROM ${name} AS whole`)
      text += found.rows.map(({ line }) => line).join('\n')
    }
    return text
  } finally {
    await client.end()
  }
}
