/**
 * The service under kill -9 while its messages go to receivers that are slow, fail, drop connections, redirect, hang, refuse
 * connections and are gone: every event arrives, those of one job in order, under one id, rightly signed.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { textWorkflow } from '../../../bench/kit/workflows.ts'
import { sleep } from '../../../lib/waiting/sleep.ts'
import { type SpawnedServer, spawnServer } from '../../support/app/spawn-server.ts'
import { findCompileCache } from '../../support/cli/compile-cache.ts'
import { findFreePort } from '../../support/network/free-port.ts'
import { createTestDatabase } from '../../support/postgres/test-database.ts'
import { type Received, startWebhookReceiver, type WebhookReceiver } from '../../support/webhook-receiver.ts'

interface WebhookKills {
  readonly jobs: number
  /** How long the service lives each time. */
  readonly lifeMs: number
  /** At least this often it is killed. */
  readonly kills: number
  readonly store: 'sqlite' | 'postgres'
  /** Kills only while no job runs: on Postgres a job that ran goes on when its lease has lapsed, which takes half a minute. */
  readonly sparesJobs?: boolean
  readonly report?: (line: string) => void
}

const EVENTS = ['job.queued', 'job.started', 'job.succeeded']
const SECRET = `whsec_${Buffer.alloc(32, 9).toString('base64')}`
const PATHS = ['/ok/a', '/slow/b', '/failing/c', '/drop/d', '/redirect/e', '/hang/f']
const GONE = '/gone/g'

export async function killAndCheckWebhooks(options: WebhookKills): Promise<void> {
  const { jobs, lifeMs, kills, report = () => {} } = options
  await using stack = new AsyncDisposableStack()
  const dataDir = await mkdtemp(join(tmpdir(), 'atelier-webhooks-'))
  stack.defer(() => rm(dataDir, { recursive: true, force: true }))
  const database = options.store === 'sqlite' ? null : stack.use(await createTestDatabase())
  // Postgres demands a key; any will do.
  const env = {
    ...findCompileCache(dataDir),
    ATELIER_TEST_PATCH: JSON.stringify({ webhooks: { firstRetryMs: 100, timeoutMs: 1000 } }),
    ...(database !== null && {
      ATELIER_DATABASE: database.url,
      ATELIER_SECRET_KEY: Buffer.alloc(32, 3).toString('base64'),
    }),
  }
  await using receiver = await startWebhookReceiver()
  for (const path of [...PATHS, GONE]) receiver.expect(path, SECRET)
  const refusing = await findFreePort()
  const addresses = [...PATHS.map((path) => `${receiver.url}${path}`), `http://127.0.0.1:${refusing}/ok/h`]
  const flags = ['--data-dir', dataDir, '--webhook-private-network']
  const patched = {
    bin: fileURLToPath(new URL('../../support/app/patched-server.ts', import.meta.url)),
  }
  let server: SpawnedServer = await spawnServer(flags, env, patched)
  // Nobody listens at this address until the service has been killed once.
  let late: WebhookReceiver | null = null
  try {
    let submitted = 0
    for (let count = 0; count < kills || submitted < jobs; count++) {
      const ends = performance.now() + lifeMs
      const share = Math.ceil(jobs / kills)
      const until = Math.min(jobs, submitted + share)
      while (submitted < until) {
        await submit(
          server.url,
          submitted,
          submitted % 50 === 0 ? `${receiver.url}${GONE}` : addresses[submitted % addresses.length],
        )
        submitted++
      }
      await sleep(Math.max(0, ends - performance.now()))
      while (options.sparesJobs === true && (await hasLiveJobs(server.url))) await sleep(50)
      await server.killNow()
      late ??= await startWebhookReceiver(refusing)
      late.expect('/ok/h', SECRET)
      server = await spawnServer(flags, env, patched)
      const all = [...receiver.received, ...late.received]
      report(`${count + 1} kills, ${submitted} jobs, ${all.length} messages received, ${countTaken(all)} events taken`)
    }
    const expected =
      Array.from({ length: jobs }, (_, index) => index).filter((index) => index % 50 !== 0).length * EVENTS.length
    while (countTaken([...receiver.received, ...(late?.received ?? [])]) < expected) await sleep(200)
    check([...receiver.received, ...(late?.received ?? [])], expected)
    report(`${expected} events, every one arrived in order, under one id, rightly signed`)
  } finally {
    await server.killNow()
    await late?.[Symbol.asyncDispose]()
  }
}

async function hasLiveJobs(url: string): Promise<boolean> {
  const answer = await fetch(`${url}/api/v2/jobs?status=queued,running&limit=1`)
  return ((await answer.json()) as { jobs: unknown[] }).jobs.length > 0
}

/** The key makes a repeated submit harmless: a kill may hide the answer to the first. */
async function submit(url: string, index: number, address: string | undefined): Promise<void> {
  const body = JSON.stringify({
    workflow: textWorkflow(index),
    webhook: { url: address, events: EVENTS, secret: SECRET },
  })
  const headers = { 'content-type': 'application/json', 'idempotency-key': `job-${index}` }
  const response = await fetch(`${url}/api/v2/jobs`, { method: 'POST', body, headers })
  assert.ok(response.status === 201 || response.status === 409, await response.text())
  await response.body?.cancel().catch(() => {})
}

const isCounted = ({ path, isTaken }: Received) => isTaken && path !== GONE
const nameOf = ({ type, data }: Received) => `${data['job_id']} ${type}`

function countTaken(received: readonly Received[]): number {
  return new Set(received.filter(isCounted).map(nameOf)).size
}

function check(received: readonly Received[], expected: number): void {
  assert.deepEqual(
    received.filter(({ fault }) => fault !== null),
    [],
  )
  const taken = received.filter(isCounted)
  assert.equal(new Set(taken.map(nameOf)).size, expected)
  // A kill may end an attempt, and each attempt begins anew; everything else happens to a job once.
  const once = received.filter(({ path, type }) => path !== GONE && type !== 'job.started')
  assert.equal(new Set(once.map(({ id }) => id)).size, new Set(once.map(nameOf)).size)
  const firsts = new Map<string, string[]>()
  for (const { type, data } of taken) {
    const jobId = String(data['job_id'])
    const seen = firsts.get(jobId) ?? []
    if (!seen.includes(type)) firsts.set(jobId, [...seen, type])
  }
  for (const order of firsts.values()) assert.deepEqual(order, EVENTS)
  assert.ok(received.some(({ path }) => path === GONE))
}
