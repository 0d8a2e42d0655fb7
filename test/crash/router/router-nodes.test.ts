/** Two processes on one Postgres: one is killed in the middle of a model call, and the other gives the same key its one generation. */
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openPostgresStore } from '../../../src/adapters/store/postgres/open-postgres-store.ts'
import { buildChild } from '../../support/app/built-child.ts'
import { addPaidAccountTo } from '../../support/app/paid-account.ts'
import { findCompileCache } from '../../support/cli/compile-cache.ts'
import { RouterClient } from '../../support/clients/router-client.ts'
import { createTestDatabase } from '../../support/postgres/test-database.ts'
import type { CrashStep } from './router-steps.ts'

const CREDIT = 10_000_000
const PRICE = 40_000

const STEPS: readonly (readonly [CrashStep, 'direct' | 'polled'])[] = [
  ['let in, not dispatched', 'direct'],
  ['the provider has it', 'direct'],
  ['accepted, handle not stored', 'polled'],
  ['handle stored', 'polled'],
  ['settled, not answered', 'direct'],
]

/** Counts generations by the key of the call: a repeated submit finds the one that is there. */
async function openProvider() {
  const made = new Map<string, number>()
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { key } = JSON.parse(Buffer.concat(chunks).toString()) as { key: string }
    if (request.url === '/submit' && !made.has(key)) made.set(key, made.size)
    response.end(JSON.stringify({ status: 'done', output: { generation: made.get(key) } }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const end = () => {
    server.closeAllConnections()
    server.close()
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, made, end }
}

interface Child {
  readonly process: ChildProcess
  readonly url: string
}

test('a process that is killed leaves its calls to another, which answers every key with its one generation', async () => {
  await using stack = new AsyncDisposableStack()
  const dataDir = await mkdtemp(join(tmpdir(), 'atelier-crash-'))
  stack.defer(() => rm(dataDir, { recursive: true, force: true }))
  const { program } = stack.use(await buildChild(new URL('./router-child.ts', import.meta.url)))
  const database = stack.use(await createTestDatabase())
  const store = stack.use(await openPostgresStore({ url: database.url, migrates: false }))
  const provider = await openProvider()
  stack.defer(provider.end)
  const { key: apiKey, accountId } = await addPaidAccountTo(store, {
    micros: CREDIT,
    overrides: { routerConcurrency: 20 },
  })
  const env = {
    PATH: process.env['PATH'] ?? '',
    ...findCompileCache(dataDir),
    ATELIER_DATABASE: database.url,
    ATELIER_SECRET_KEY: randomBytes(32).toString('hex'),
  }
  async function startChild(): Promise<Child> {
    const child = fork(program, [dataDir, provider.url], { env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    stack.defer(() => void child.kill('SIGKILL'))
    const [url] = (await once(child, 'message')) as [string]
    return { process: child, url }
  }
  const modelOf = (index: number) => `crash/${STEPS[index]?.[1]}-${index}`
  const run = ({ url }: Child, index: number) =>
    new RouterClient(url, { 'x-api-key': apiKey }).run(modelOf(index), {}, { key: `key ${index}` })

  const survivor = await startChild()
  const victim = await startChild()
  const armed = once(victim.process, 'message')
  victim.process.send(Object.fromEntries(STEPS.map(([step], index) => [modelOf(index), step])))
  await armed
  const missing = new Set(STEPS.map((_, index) => modelOf(index)))
  const allStand = Promise.withResolvers<void>()
  victim.process.on('message', ({ reached }: { reached: string }) => {
    missing.delete(reached)
    if (missing.size === 0) allStand.resolve()
  })
  const cutCalls = STEPS.map(([step], index) => assert.rejects(run(victim, index), step))
  await allStand.promise
  const died = once(victim.process, 'exit')
  victim.process.kill('SIGKILL')
  assert.equal((await died)[1], 'SIGKILL')
  await Promise.all(cutCalls)
  // Asked at once: they wait until the leases of the dead have lapsed.
  const answers = STEPS.map((_, index) => run(survivor, index))
  const generations: unknown[] = []
  for (const [index, answer] of (await Promise.all(answers)).entries()) {
    assert.equal(answer.status, 200, `${STEPS[index]?.join()}: ${answer.text}`)
    generations.push(answer.json.generation)
  }
  assert.deepEqual(new Set(generations), new Set([0, 1, 2, 3, 4]))
  assert.equal(provider.made.size, STEPS.length)
  const balance = await store.ledger.balance(accountId)
  assert.deepEqual([balance?.available, balance?.held], [CREDIT - STEPS.length * PRICE, 0])
  assert.deepEqual((await store.ledger.check()).faults, [])
  assert.deepEqual(await store.calls.standing(accountId), { runningCalls: 0, committedMicros: 0 })
})
