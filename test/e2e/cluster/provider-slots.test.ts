/** Calls of one provider through two processes, started as a user starts them: its concurrency holds over both. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type SpawnedServer, spawnServer } from '../../support/app/spawn-server.ts'
import { createTestDatabase } from '../../support/postgres/test-database.ts'
import { openaiFake } from '../../support/providers/fake-providers/direct.ts'
import { startFakeProvider } from '../../support/providers/fake-providers/fake-card.ts'
import { readBody } from '../../support/providers/http-fake.ts'
import { waitUntil } from '../../support/wait-until.ts'

const CONCURRENCY = 2
const CALLS = 8

describe('two services on one database', () => {
  const stack = new AsyncDisposableStack()
  const waiting: (() => void)[] = []
  let services: SpawnedServer[] = []
  let atOnce = 0
  let most = 0

  /** In front of the provider: counts what is under way, and lets each call go on when it is told to. */
  async function openGate(target: string): Promise<string> {
    const server = createServer(async (request, response) => {
      most = Math.max(most, ++atOnce)
      const body = await readBody(request)
      await new Promise<void>((resolve) => waiting.push(resolve))
      const headers = {
        'content-type': String(request.headers['content-type']),
        authorization: String(request.headers.authorization),
      }
      const answer = await fetch(`${target}${request.url}`, { method: 'POST', headers, body: new Uint8Array(body) })
      const text = await answer.text()
      atOnce--
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(text)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    stack.defer(async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    })
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  before(async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'atelier-slots-'))
    stack.defer(() => rmSync(folder, { recursive: true, force: true }))
    const { url } = stack.use(await createTestDatabase())
    const fake = stack.use(await startFakeProvider(openaiFake))
    const base_url = await openGate(fake.baseUrl)
    const providers = path.join(folder, 'providers.json')
    const openai = { key: openaiFake.key, base_url, concurrency: CONCURRENCY }
    writeFileSync(providers, JSON.stringify({ '*': { allow_private_network: true }, openai }))
    const env = { ATELIER_DATABASE: url, ATELIER_SECRET_KEY: 'ab'.repeat(32), ATELIER_PROVIDERS: providers }
    const flags = ['--data-dir', path.join(folder, 'data'), '--workers', '0']
    services = await Promise.all([1, 2].map(async () => stack.use(await spawnServer(flags, env))))
  })
  after(() => stack.disposeAsync())

  test('give a provider no more calls at a time than its settings say, and all of them get their turn', async () => {
    const calls = Array.from({ length: CALLS }, (_, place) =>
      fetch(`${services[place % 2].url}/v2/models/openai/gpt-image-1`, {
        ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
        body: JSON.stringify({ prompt: `fox ${place}` }),
      }).then(async (answer) => ({ status: answer.status, text: await answer.text() })),
    )
    let isOver = false
    const ended = Promise.all(calls).finally(() => {
      isOver = true
    })
    await waitUntil(() => waiting.length > 0)
    // Each is let go on only when the next one had every chance to come too early.
    while (!isOver) {
      await Promise.race([waitUntil(() => waiting.length > 0 || isOver), ended])
      waiting.shift()?.()
    }
    for (const { status, text } of await ended) assert.equal(status, 200, text)
    assert.ok(most <= CONCURRENCY, `${most} calls at a time`)
  })
})
