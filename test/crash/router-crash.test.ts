import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { openSqliteStore } from '../../src/adapters/store/sqlite/open-store.ts'
import { addPaidAccount } from '../support/paid-account.ts'
import { RouterClient } from '../support/router-client.ts'
import { CRASH_STEPS, type CrashStep } from './router-steps.ts'

const CHILD = fileURLToPath(new URL('./router-child.ts', import.meta.url))
const CREDIT = 10_000_000
const PRICE = 40_000

/** Counts generations by the key of the call: a repeated submit finds the one that is there. */
async function openProvider(): Promise<{
  readonly server: Server
  readonly url: string
  readonly made: Map<string, number>
}> {
  const made = new Map<string, number>()
  const server = createServer((request, response) => {
    let text = ''
    request.on('data', (chunk: Buffer) => {
      text += chunk.toString()
    })
    request.on('end', () => {
      const { key } = JSON.parse(text) as { key: string }
      if (request.url === '/submit' && !made.has(key)) made.set(key, made.size)
      response.end(JSON.stringify({ status: 'done', output: { generation: made.get(key) } }))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, made }
}

interface Child {
  readonly process: ChildProcess
  readonly url: string
}

async function startChild(dataDir: string, providerUrl: string): Promise<Child> {
  // Most of a start is reading sources, the same every time.
  const env = { PATH: process.env['PATH'] ?? '', NODE_COMPILE_CACHE: join(dataDir, 'compiled') }
  const child = fork(CHILD, [dataDir, providerUrl], { env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const [url] = (await once(child, 'message')) as [string]
  return { process: child, url }
}

async function arm({ process: child }: Child, step: CrashStep): Promise<void> {
  const ready = once(child, 'message')
  child.send(step)
  await ready
}

test('whenever the process is killed, the same key gives the one generation that is paid once', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'atelier-crash-'))
  const provider = await openProvider()
  const { key: apiKey, accountId } = await addPaidAccount(dataDir, { micros: CREDIT })
  let child = await startChild(dataDir, provider.url)
  let calls = 0
  try {
    for (const [step, kinds] of Object.entries(CRASH_STEPS)) {
      for (const kind of kinds) {
        const where = `${kind}: ${step}`
        calls++
        await arm(child, step as CrashStep)
        const died = once(child.process, 'exit')
        const run = ({ url }: Child) =>
          new RouterClient(url, { 'x-api-key': apiKey }).run(`crash/${kind}`, { step }, { key: where })
        await assert.rejects(run(child), where)
        assert.equal((await died)[1], 'SIGKILL', where)
        child = await startChild(dataDir, provider.url)
        const answer = await run(child)
        assert.deepEqual([answer.status, answer.json], [200, { generation: calls - 1 }], `${where} ${answer.text}`)
        assert.equal(provider.made.size, calls, where)
        const again = await run(child)
        assert.deepEqual([again.bytes, again.headers['idempotent-replayed']], [answer.bytes, 'true'], where)
      }
    }
    const left = once(child.process, 'exit')
    child.process.send('stop')
    await left
    await using store = await openSqliteStore({ directory: dataDir })
    const balance = await store.ledger.balance(accountId)
    assert.deepEqual([balance?.available, balance?.held], [CREDIT - calls * PRICE, 0])
    const charges = await store.ledger.entries(accountId, { limit: 100, before: null, kinds: ['settle'] })
    assert.equal(charges.length, calls)
    assert.deepEqual((await store.ledger.check()).faults, [])
  } finally {
    child.process.kill('SIGKILL')
    provider.server.closeAllConnections()
    provider.server.close()
    await rm(dataDir, { recursive: true, force: true })
  }
})
