import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { openSqliteStore } from '../../../src/adapters/store/sqlite/open-sqlite-store.ts'
import { type BuiltChild, buildChild } from '../../support/app/built-child.ts'
import { addPaidAccount } from '../../support/app/paid-account.ts'
import { findCompileCache } from '../../support/cli/compile-cache.ts'
import { CheckedClient, node } from '../../support/clients/checked-client.ts'
import { RouterClient } from '../../support/clients/router-client.ts'
import { CRASH_STEPS, type CrashPlan, type CrashStep } from './router-steps.ts'

let built: BuiltChild
before(async () => {
  built = await buildChild(new URL('./router-child.ts', import.meta.url))
})
after(() => built[Symbol.dispose]())

const CREDIT = 10_000_000
const PRICE = 40_000
// All calls of a test are under way when the process is killed.
const OVERRIDES = { routerConcurrency: 20, concurrentJobs: 20 }

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

interface ChildOptions {
  readonly runsJobs?: boolean
  readonly env?: Readonly<Record<string, string>>
}

async function startChild(dataDir: string, providerUrl: string, options: ChildOptions = {}): Promise<Child> {
  const env = { PATH: process.env['PATH'] ?? '', ...findCompileCache(dataDir), ...options.env }
  const flags = options.runsJobs === true ? [dataDir, providerUrl, 'jobs'] : [dataDir, providerUrl]
  const child = fork(built.program, flags, { env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const [url] = (await once(child, 'message')) as [string]
  return { process: child, url }
}

/** Cuts every call off at its step: begins them, waits until each stands there, and kills the process. */
async function cutOff({ process: child }: Child, plan: CrashPlan, begin: () => void): Promise<void> {
  const armed = once(child, 'message')
  child.send(plan)
  await armed
  const missing = new Set(Object.keys(plan))
  const allStand = Promise.withResolvers<void>()
  child.on('message', ({ reached }: { reached: string }) => {
    missing.delete(reached)
    if (missing.size === 0) allStand.resolve()
  })
  begin()
  await allStand.promise
  const died = once(child, 'exit')
  child.kill('SIGKILL')
  assert.equal((await died)[1], 'SIGKILL')
}

async function stop({ process: child }: Child): Promise<void> {
  const left = once(child, 'exit')
  child.send('stop')
  await left
}

async function checkCharges(dataDir: string, accountId: string, calls: number, price = PRICE): Promise<void> {
  await using store = await openSqliteStore({ directory: dataDir })
  const balance = await store.ledger.balance(accountId)
  assert.deepEqual([balance?.available, balance?.held], [CREDIT - calls * price, 0])
  const charges = await store.ledger.entries(accountId, { limit: 100, before: null, kinds: ['settle'] })
  assert.equal(charges.length, calls)
  assert.deepEqual((await store.ledger.check()).faults, [])
}

test('whenever the process is killed, the same key gives the one generation that is paid once', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'atelier-crash-'))
  const provider = await openProvider()
  const { key: apiKey, accountId } = await addPaidAccount(dataDir, { micros: CREDIT, overrides: OVERRIDES })
  let child = await startChild(dataDir, provider.url)
  const cuts = Object.entries(CRASH_STEPS).flatMap(([step, kinds]) => kinds.map((kind) => ({ step, kind })))
  const modelOf = (index: number) => `crash/${cuts[index]?.kind}-${index}`
  const run = (index: number) =>
    new RouterClient(child.url, { 'x-api-key': apiKey }).run(modelOf(index), {}, { key: `key ${index}` })
  try {
    const plan = Object.fromEntries(cuts.map(({ step }, index) => [modelOf(index), step as CrashStep]))
    const cutCalls: Promise<void>[] = []
    await cutOff(child, plan, () => {
      for (const [index, { step }] of cuts.entries()) cutCalls.push(assert.rejects(run(index), step))
    })
    await Promise.all(cutCalls)
    child = await startChild(dataDir, provider.url)
    const generations = new Set<number>()
    for (const [index, { step, kind }] of cuts.entries()) {
      const where = `${kind}: ${step}`
      const answer = await run(index)
      assert.equal(answer.status, 200, `${where} ${answer.text}`)
      generations.add(answer.json.generation)
      const again = await run(index)
      assert.deepEqual([again.bytes, again.headers['idempotent-replayed']], [answer.bytes, 'true'], where)
    }
    assert.deepEqual([generations.size, provider.made.size], [cuts.length, cuts.length])
    await stop(child)
    await checkCharges(dataDir, accountId, cuts.length)
  } finally {
    child.process.kill('SIGKILL')
    provider.server.closeAllConnections()
    provider.server.close()
    await rm(dataDir, { recursive: true, force: true })
  }
})

/** Before the call is sent, while it runs, and once it was collected but its node has not ended. */
const NODE_STEPS: readonly (readonly [CrashStep, 'direct' | 'polled'])[] = [
  ['let in, not dispatched', 'direct'],
  ['the provider has it', 'polled'],
  ['handle stored', 'polled'],
  ['while it is polled', 'polled'],
  ['settled, not answered', 'direct'],
  ['settled, not answered', 'polled'],
]

test('a job whose model call was cut off by a kill goes on with that very call, paid once', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'atelier-crash-'))
  const provider = await openProvider()
  const { key: apiKey, accountId } = await addPaidAccount(dataDir, { micros: CREDIT, overrides: OVERRIDES })
  const headers = { authorization: `Bearer ${apiKey}` }
  const options = { runsJobs: true, env: { ATELIER_SECRET_KEY: randomBytes(32).toString('hex') } }
  let child = await startChild(dataDir, provider.url, options)
  try {
    const modelOf = (index: number) => `crash/${NODE_STEPS[index]?.[1]}-${index}`
    const ids: string[] = []
    const submit = async (index: number) => {
      const run = node('RunModel', { model: modelOf(index), input: '{}' })
      const workflow = { '1': run, '2': node('PreviewAny', { source: ['1', 0] }) }
      const { json } = await new CheckedClient(child.url, headers).call('/api/v2/jobs', {
        method: 'POST',
        body: JSON.stringify({ workflow, extra_data: { api_key_comfy_org: apiKey } }),
      })
      ids[index] = json.id
    }
    const plan = Object.fromEntries(NODE_STEPS.map(([step], index) => [modelOf(index), step]))
    const submitted: Promise<void>[] = []
    await cutOff(child, plan, () => submitted.push(...NODE_STEPS.map((_, index) => submit(index))))
    await Promise.all(submitted)
    child = await startChild(dataDir, provider.url, options)
    const client = new CheckedClient(child.url, headers)
    const generations = new Set<number>()
    for (const [index, [step, kind]] of NODE_STEPS.entries()) {
      const job = await client.until(ids[index] ?? '', ({ completed_at }) => completed_at !== null)
      assert.equal(job.status, 'succeeded', `${kind}: ${step}: ${JSON.stringify(job.error)}`)
      const content = await fetch(job.outputs[0]?.url ?? '')
      const made = (await content.json()) as { generation: number }
      generations.add(made.generation)
    }
    assert.deepEqual([generations.size, provider.made.size], [NODE_STEPS.length, NODE_STEPS.length])
    await stop(child)
    await checkCharges(dataDir, accountId, NODE_STEPS.length)
  } finally {
    child.process.kill('SIGKILL')
    provider.server.closeAllConnections()
    provider.server.close()
    await rm(dataDir, { recursive: true, force: true })
  }
})

const ENDPOINT_STEPS: readonly CrashStep[] = [
  'before it is let in',
  'let in, not dispatched',
  'accepted, handle not stored',
  'handle stored',
  'finished, not settled',
  'settled, not answered',
]
const JOB_PRICE = 500
const JOB_PRICES = { pools: { '*': { perSecondMicros: 0, minimumMicros: JOB_PRICE, holdMicros: 2000 } } }

test('a call that runs an endpoint is one job, paid once, whenever the process is killed', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'atelier-crash-'))
  const provider = await openProvider()
  const { key: apiKey, accountId } = await addPaidAccount(dataDir, { micros: CREDIT, overrides: OVERRIDES })
  const headers = { authorization: `Bearer ${apiKey}` }
  const prices = join(dataDir, 'prices.json')
  await writeFile(prices, JSON.stringify(JOB_PRICES))
  const env = { ATELIER_SECRET_KEY: randomBytes(32).toString('hex'), ATELIER_PRICES: prices }
  const options = { runsJobs: true, env }
  let child = await startChild(dataDir, provider.url, options)
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(`${child.url}/api/v2${path}`, { ...init, headers }).then(async (answer) => {
      const text = await answer.text()
      assert.ok(answer.ok, text)
      return JSON.parse(text)
    })
  try {
    const declaration = { only: true, inputs: { width: '1.width' } }
    const file = {
      '1': node('EmptyImage', { width: 8, height: 8, batch_size: 1, color: 0 }),
      '2': node('SaveImage', { images: ['1', 0], filename_prefix: 'x' }),
    }
    await ask('/endpoints', { method: 'POST', body: JSON.stringify({ name: 'square', file, declaration }) })
    const run = (index: number) =>
      new RouterClient(child.url, { 'x-api-key': apiKey }).run(
        'local/square',
        { width: 8 + index },
        { key: `key ${index}` },
      )
    const plan = Object.fromEntries(ENDPOINT_STEPS.map((step, index) => [`key ${index}`, step]))
    const cutCalls: Promise<void>[] = []
    await cutOff(child, plan, () => {
      for (const [index, step] of ENDPOINT_STEPS.entries()) cutCalls.push(assert.rejects(run(index), step))
    })
    await Promise.all(cutCalls)
    child = await startChild(dataDir, provider.url, options)
    const jobs = new Set<string>()
    for (const [index, step] of ENDPOINT_STEPS.entries()) {
      const answer = await run(index)
      assert.equal(answer.status, 200, `${step}: ${answer.text}`)
      const again = await run(index)
      assert.deepEqual([again.bytes, again.headers['idempotent-replayed']], [answer.bytes, 'true'], step)
      jobs.add(answer.json.job_id)
      assert.equal(Buffer.from(answer.json.files[0].data, 'base64').readUInt32BE(16), 8 + index, step)
    }
    assert.equal(jobs.size, ENDPOINT_STEPS.length)
    assert.equal((await ask('/jobs?limit=100')).jobs.length, jobs.size)
    await stop(child)
    await checkCharges(dataDir, accountId, ENDPOINT_STEPS.length, JOB_PRICE)
  } finally {
    child.process.kill('SIGKILL')
    provider.server.closeAllConnections()
    provider.server.close()
    await rm(dataDir, { recursive: true, force: true, maxRetries: 10 })
  }
})
