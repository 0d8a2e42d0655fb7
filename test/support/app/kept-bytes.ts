/**
 * A program: makes calls to a service in its own process and prints how many bytes each call left for a full garbage collection. Not within the test runner,
 * which keeps a record of every promise. The client is Node's own: others keep their requests themselves.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { collectGarbage } from '../../../lib/threads/garbage.ts'
import { addPaidAccount } from './paid-account.ts'
import { startTestApp } from './start-app.ts'

const CALLS = 600
const WARM_UP = 200
const AT_ONCE = 8

interface Call {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly status: number
}

async function makeCalls(agent: Agent, count: number, toCall: () => Call): Promise<void> {
  let made = 0
  const makeThem = async () => {
    while (made < count) {
      made++
      if (made % 50 === 0) collectGarbage('minor')
      await makeCall(agent, toCall())
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, makeThem))
}

async function makeCall(agent: Agent, { url, headers, body, status }: Call): Promise<void> {
  const outgoing = request(url, { agent, method: 'POST', headers: { 'content-type': 'application/json', ...headers } })
  outgoing.end(body)
  const [answer] = await once(outgoing, 'response')
  answer.resume()
  await once(answer, 'end')
  assert.equal(answer.statusCode, status)
}

/** Bytes that one call leaves for a full collection. */
async function measureKept(toCall: () => Call): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE })
  try {
    await makeCalls(agent, WARM_UP, toCall)
    collectGarbage('major')
    await makeCalls(agent, CALLS, toCall)
    // Callbacks of the last answers have run by then.
    await new Promise((resolve) => setImmediate(resolve))
    for (let round = 0; round < 3; round++) collectGarbage('minor')
    const before = process.memoryUsage().heapUsed
    collectGarbage('major')
    return (before - process.memoryUsage().heapUsed) / CALLS
  } finally {
    agent.destroy()
  }
}

async function measureSubmits(): Promise<number> {
  await using service = await startTestApp({ settings: { workers: '0', maxQueue: '100000' } })
  const workflow = { '1': { class_type: 'PreviewAny', inputs: { source: 'a value' } } }
  const body = JSON.stringify({ workflow })
  return await measureKept(() => ({ url: `${service.url}/api/v2/jobs`, headers: {}, body, status: 201 }))
}

async function measureRoutedCalls(): Promise<number> {
  const provider = createServer((incoming, response) => {
    incoming.resume()
    incoming.on('end', () => {
      const answer = { choices: [{ message: { role: 'assistant', content: 'yes' } }], usage: { cost: 0.000_05 } }
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(answer))
    })
  }).listen(0, '127.0.0.1')
  await once(provider, 'listening')
  const dataDir = await mkdtemp(join(tmpdir(), 'atelier-test-'))
  const { key } = await addPaidAccount(dataDir, { micros: 1_000_000_000, overrides: { routerConcurrency: 100 } })
  const base_url = `http://127.0.0.1:${(provider.address() as AddressInfo).port}/v1`
  const providers = join(dataDir, 'providers.json')
  const openrouter = { key: 'secret', base_url }
  await writeFile(providers, JSON.stringify({ openrouter, '*': { allow_private_network: true } }))
  let count = 0
  try {
    await using service = await startTestApp({ dataDir, settings: { kind: 'cloud', workers: '0', providers } })
    return await measureKept(() => ({
      url: `${service.url}/v2/models/openrouter/chat-completions`,
      headers: { 'x-api-key': key, 'idempotency-key': `call-${count++}` },
      body: JSON.stringify({ model: 'some/model', messages: [{ role: 'user', content: 'hello' }] }),
      status: 200,
    }))
  } finally {
    provider.closeAllConnections()
    provider.close()
  }
}

process.stdout.write(String(await (process.argv[2] === 'submit' ? measureSubmits() : measureRoutedCalls())))
