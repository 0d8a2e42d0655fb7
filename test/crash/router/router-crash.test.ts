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
import { CRASH_STEPS, type CrashStep } from './router-steps.ts'

let built: BuiltChild
before(async () => {
  built = await buildChild(new URL('./router-child.ts', import.meta.url))
})
after(() => built[Symbol.dispose]())

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

async function arm({ process: child }: Child, step: CrashStep): Promise<void> {
  const ready = once(child, 'message')
  child.send(step)
  await ready
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
    await stop(child)
    await checkCharges(dataDir, accountId, calls)
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
  const { key: apiKey, accountId } = await addPaidAccount(dataDir, { micros: CREDIT })
  const headers = { authorization: `Bearer ${apiKey}` }
  const options = { runsJobs: true, env: { ATELIER_SECRET_KEY: randomBytes(32).toString('hex') } }
  let child = await startChild(dataDir, provider.url, options)
  try {
    for (const [index, [step, kind]] of NODE_STEPS.entries()) {
      const where = `${kind}: ${step}`
      await arm(child, step)
      const died = once(child.process, 'exit')
      const run = node('RunModel', { model: `crash/${kind}`, input: JSON.stringify({ step }) })
      const workflow = { '1': run, '2': node('PreviewAny', { source: ['1', 0] }) }
      const extra_data = { api_key_comfy_org: apiKey }
      // Its answer may go down with the process; the job is recorded all the same.
      const body = JSON.stringify({ workflow, extra_data })
      const answer = await fetch(`${child.url}/api/v2/jobs`, { method: 'POST', headers, body }).catch(() => null)
      assert.ok(answer === null || answer.status === 201, `${where}: ${answer?.status}`)
      assert.equal((await died)[1], 'SIGKILL', where)
      child = await startChild(dataDir, provider.url, options)
      const client = new CheckedClient(child.url, headers)
      const { json } = await client.call('/api/v2/jobs?limit=1')
      const job = await client.until(json.jobs[0].id, ({ completed_at }) => completed_at !== null)
      assert.equal(job.status, 'succeeded', `${where}: ${JSON.stringify(job.error)}`)
      const made = await fetch(job.outputs[0]?.url ?? '').then((content) => content.json())
      assert.deepEqual([made, provider.made.size], [{ generation: index }, index + 1], where)
    }
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
  const { key: apiKey, accountId } = await addPaidAccount(dataDir, { micros: CREDIT })
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
    const jobs = new Set<string>()
    for (const [index, step] of ENDPOINT_STEPS.entries()) {
      await arm(child, step)
      const died = once(child.process, 'exit')
      const run = () =>
        new RouterClient(child.url, { 'x-api-key': apiKey }).run('local/square', { width: 8 + index }, { key: step })
      await assert.rejects(run(), step)
      assert.equal((await died)[1], 'SIGKILL', step)
      child = await startChild(dataDir, provider.url, options)
      const answer = await run()
      assert.equal(answer.status, 200, `${step}: ${answer.text}`)
      const again = await run()
      assert.deepEqual([again.bytes, again.headers['idempotent-replayed']], [answer.bytes, 'true'], step)
      jobs.add(answer.json.job_id)
      assert.equal((await ask('/jobs?limit=100')).jobs.length, jobs.size, step)
      assert.equal(Buffer.from(answer.json.files[0].data, 'base64').readUInt32BE(16), 8 + index, step)
    }
    assert.equal(jobs.size, ENDPOINT_STEPS.length)
    await stop(child)
    await checkCharges(dataDir, accountId, ENDPOINT_STEPS.length, JOB_PRICE)
  } finally {
    child.process.kill('SIGKILL')
    provider.server.closeAllConnections()
    provider.server.close()
    await rm(dataDir, { recursive: true, force: true, maxRetries: 10 })
  }
})
