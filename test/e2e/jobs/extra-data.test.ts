/** `extra_data` through the whole service: it reaches the engine as it came, and nothing and nobody else. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Log } from '../../../lib/log.ts'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { isOnPostgres } from '../../support/app/test-store.ts'
import { CheckedClient, node, refused } from '../../support/clients/checked-client.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'

const SECRET = 'sk-very-secret-value'
const SAVE = { '1': node('FakeSave') }
const PNG_INFO = { extra_pnginfo: { workflow: { nodes: [], version: 0.4, seed: 1 } } }

/** Everything that is logged, as text. */
function recordLog(): { log: Log; text(): string } {
  const lines: string[] = []
  const write = (...parts: unknown[]) => void lines.push(JSON.stringify(parts, showErrors))
  const log: Log = { debug: write, info: write, warn: write, error: write, child: () => log }
  return { log, text: () => lines.join('\n') }
}

function showErrors(_key: string, value: unknown): unknown {
  return value instanceof Error ? { ...value, message: value.message, stack: value.stack } : value
}

async function bytesBelow(folder: string): Promise<string> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  const contents = await Promise.all(files.map(({ parentPath, name }) => readFile(join(parentPath, name), 'latin1')))
  return contents.join('\n')
}

describe('extra_data', () => {
  let service: TestApp
  let client: CheckedClient
  const engine = createFakeEngine()
  const recorded = recordLog()
  before(async () => {
    const settings = { workers: '1', logLevel: 'debug' }
    service = await startTestApp({ settings, overrides: { engine }, log: recorded.log })
    client = new CheckedClient(service.url)
  })
  after(() => service[Symbol.asyncDispose]())

  async function forwarded(more: object): Promise<unknown> {
    const job = await client.run(SAVE, more)
    assert.equal(job.status, 'succeeded')
    return engine.runs.find(({ jobId }) => jobId === job.id)?.extraData
  }

  test('reaches the engine as it came, under either spelling', async () => {
    for (const extra_data of [
      { api_key_comfy_org: SECRET },
      { api_key_service_org: SECRET },
      { auth_token_comfy_org: SECRET },
      { auth_token_service_org: SECRET },
      { api_key_comfy_org: SECRET, api_key_service_org: 'other', auth_token_comfy_org: '' },
      PNG_INFO,
      { ...PNG_INFO, api_key_comfy_org: SECRET },
      { extra_pnginfo: {} },
      { extra_pnginfo: { workflow: {} } },
    ]) {
      assert.deepEqual(JSON.parse(JSON.stringify(await forwarded({ extra_data }))), extra_data)
    }
  })

  test('that is absent or empty is nothing to the engine', async () => {
    assert.equal(await forwarded({}), null)
    assert.equal(await forwarded({ extra_data: {} }), null)
  })

  test('is a closed object: anything else in it is 400, and the refusal does not repeat it', async () => {
    const wrong: unknown[] = [
      null,
      [],
      'text',
      5,
      true,
      { unknown: SECRET },
      { api_key_comfy_org: null },
      { api_key_comfy_org: 5 },
      { api_key_comfy_org: { key: SECRET } },
      { api_key_service_org: [SECRET] },
      { auth_token_comfy_org: true },
      { api_key_comfy_org: 'ok', client_id: SECRET },
      { extra_pnginfo: null },
      { extra_pnginfo: [] },
      { extra_pnginfo: SECRET },
      { extra_pnginfo: { workflow: null } },
      { extra_pnginfo: { workflow: [] } },
      { extra_pnginfo: { workflow: SECRET } },
      { extra_pnginfo: { workflow: {}, prompt: {} } },
      { extra_pnginfo: { workflow: {} }, extra: 1 },
    ]
    for (const extra_data of wrong) {
      const answer = await client.submit({ workflow: SAVE, extra_data })
      refused(answer, 400, 'invalid_request')
      assert.ok(!answer.text.includes(SECRET), answer.text)
    }
    const bigNumber = '{"workflow":{},"extra_data":{"extra_pnginfo":{"workflow":18446744073709551615}}}'
    refused(await client.submit(bigNumber), 400, 'invalid_request')
  })

  test('may hold credentials where none belong: they are blanked before anything is stored or run', async () => {
    const workflow = { headers: { Authorization: `Bearer ${SECRET}` }, apiKey: SECRET, note: `my key is ${SECRET}` }
    const plain = { max_tokens: 5, keyframes: ['a'], token_normalization: 'mean', password: '', seed: 1 }
    const sent = { api_key_comfy_org: SECRET, extra_pnginfo: { workflow: { ...workflow, ...plain, list: [workflow] } } }
    const blanked = { headers: { Authorization: '[REDACTED]' }, apiKey: '[REDACTED]', note: 'my key is [REDACTED]' }
    const extra_pnginfo = { workflow: { ...blanked, ...plain, list: [blanked] } }
    const got = JSON.parse(JSON.stringify(await forwarded({ extra_data: sent })))
    assert.deepEqual(got, { api_key_comfy_org: SECRET, extra_pnginfo })
    assert.ok(!(await bytesBelow(service.dataDir)).includes(SECRET))
  })

  test('is in no answer, no event, no log and no file', async () => {
    const gate = await client.accepted({ '1': node('FakeGate') })
    await client.untilStatus(gate.id, 'running')
    const extra_data = { api_key_comfy_org: SECRET, ...PNG_INFO }
    const waiting = await client.accepted({ '1': node('FakeSave'), '2': node('FakeFail') }, { extra_data })
    assert.ok(!(await bytesBelow(service.dataDir)).includes(SECRET), 'the secret lies in a file while the job waits')
    engine.openGate()
    await client.untilStatus(waiting.id, 'failed')
    const path = `/api/v2/jobs/${waiting.id}`
    const seen = [
      await client.call(path),
      await client.call(`${path}/workflow`),
      await client.call(`${path}/logs`),
      await client.call('/api/v2/jobs?limit=100'),
      await client.cancel(waiting.id),
    ].map(({ text }) => text)
    seen.push(
      JSON.stringify(await client.events(waiting.id)),
      await fetch(`${service.url}/metrics`).then((r) => r.text()),
    )
    for (const text of seen) assert.ok(!text.includes(SECRET) && !text.includes('extra_data'))
    assert.ok(!recorded.text().includes(SECRET))
    assert.ok(!(await bytesBelow(service.dataDir)).includes(SECRET))
  })
})

describe('extra_data of a job that waits over a restart', () => {
  // Postgres demands a secret key.
  if (!isOnPostgres) {
    test('without a secret key is lost, and the job fails rather than run without it', async () => {
      const engine = createFakeEngine()
      const first = await startTestApp({ settings: { workers: '0' }, overrides: { engine } })
      const { id } = await new CheckedClient(first.url).accepted(SAVE, { extra_data: { api_key_comfy_org: SECRET } })
      await first.app[Symbol.asyncDispose]()
      await using second = await startTestApp({ dataDir: first.dataDir, overrides: { engine } })
      const client = new CheckedClient(second.url)
      const job = await client.untilStatus(id, 'failed')
      assert.equal(job.error?.['code'], 'credentials_lost')
      assert.equal(engine.runs.length, 0)
      assert.equal((await client.run(SAVE)).status, 'succeeded')
    })
  }

  test('with a secret key waits sealed, reaches the engine, and is then erased', async () => {
    const engine = createFakeEngine()
    const secretKey = randomBytes(32).toString('hex')
    const first = await startTestApp({ settings: { workers: '0', secretKey }, overrides: { engine } })
    const { id } = await new CheckedClient(first.url).accepted(SAVE, { extra_data: { api_key_comfy_org: SECRET } })
    assert.ok(!(await bytesBelow(first.dataDir)).includes(SECRET))
    await first.app[Symbol.asyncDispose]()
    await using second = await startTestApp({ dataDir: first.dataDir, settings: { secretKey }, overrides: { engine } })
    await new CheckedClient(second.url).untilStatus(id, 'succeeded')
    assert.deepEqual(JSON.parse(JSON.stringify(engine.runs[0].extraData)), { api_key_comfy_org: SECRET })
    assert.ok(!(await bytesBelow(second.dataDir)).includes(SECRET))
  })
})

test('the built-in engine embeds the workflow that came with it in its pictures, and never a credential', async () => {
  await using service = await startTestApp()
  const client = new CheckedClient(service.url)
  const extra_data = { api_key_comfy_org: SECRET, extra_pnginfo: { workflow: { nodes: [], mark: 'from the editor' } } }
  const picture = node('EmptyImage', { width: 8, height: 8, batch_size: 1, color: 0 })
  const workflow = { '1': picture, '2': node('SaveImage', { images: ['1', 0], filename_prefix: 'x' }) }
  const job = await client.run(workflow, { extra_data })
  const { text } = await client.call(`/api/v2/assets/${job.outputs[0].id}/content`)
  assert.match(text, /tEXtworkflow/)
  assert.match(text, /from the editor/)
  assert.match(text, /tEXtprompt/)
  assert.ok(!text.includes(SECRET))
})
