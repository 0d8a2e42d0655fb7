/**
 * What jobs, submits and polls cost when 1, 2 and 4 processes share one durable Postgres. Every process gets the same load, whatever their
 * number. Only processor time and counts are kept: they hold on a busy machine, seconds do not.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type PostgresServer, startPostgres } from '../../test/support/postgres/postgres-server.ts'
import { measureLoad } from '../kit/load.ts'
import { forkServer, type ServerChild } from '../kit/server-child.ts'
import { freshWorkflow } from '../kit/workflows.ts'
import type { JobCost, LoadName, MeasuredRun } from './costs.ts'
import { measureSpent, perOne } from './meter.ts'

const CLIENTS = { light: 1, heavy: 64 }
const JOBS_PER_PROCESS = { light: 60, heavy: 300 }
const LOAD_SECONDS = 3
const IDLE_MS = 6000

export async function measureCluster(processes: number): Promise<MeasuredRun> {
  // No checkpoint in between: the whole pages that follow one would be charged to whoever comes first.
  const settings = { max_wal_size: '8GB', checkpoint_timeout: '1h' }
  await using server = await startPostgres({ isDurable: true, settings })
  const dataDir = mkdtempSync(path.join(tmpdir(), 'atelier-model-'))
  try {
    const shared = { dataDir, database: server.url, secretKey: 'ab'.repeat(32), maxQueue: 10_000_000 }
    const perJob = await measureJobs({ processes, server, shared })
    const api = await measureRequests({ processes, server, shared: { ...shared, role: 'api' } })
    return { processes, ...perJob, ...api }
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}

interface Setup {
  readonly processes: number
  readonly server: PostgresServer
  readonly shared: Readonly<Record<string, unknown>>
}

async function startNodes({ processes, shared }: Setup): Promise<AsyncDisposable & { readonly nodes: ServerChild[] }> {
  const stack = new AsyncDisposableStack()
  const nodes: ServerChild[] = []
  for (let index = 0; index < processes; index += 1) {
    nodes.push(stack.use(await forkServer('bench/servers/atelier.ts', { ...shared })))
  }
  return { nodes, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

async function measureJobs(setup: Setup): Promise<Pick<MeasuredRun, 'perJob' | 'idlePerSecond'>> {
  await using started = await startNodes({ ...setup, shared: { ...setup.shared, engine: 'instant', workers: 32 } })
  const { nodes } = started
  const meter = { nodes, server: setup.server }
  await runJobs(nodes, { clients: CLIENTS.heavy, perNode: JOBS_PER_PROCESS.light })
  const idle = await measureSpent(meter, () => pause(IDLE_MS))
  const measure = async (load: LoadName): Promise<JobCost> => {
    const perNode = JOBS_PER_PROCESS[load]
    let outputBytes = 0
    const spent = await measureSpent(meter, async () => {
      outputBytes = await runJobs(nodes, { clients: CLIENTS[load], perNode })
    })
    const jobs = perNode * nodes.length
    return { ...perOne(spent, jobs), objectWrites: 1, objectReads: 1, outputBytes: outputBytes / jobs }
  }
  const { nodeMicros, postgresMicros, statements, logBytes } = perOne(idle, idle.processSeconds)
  const idlePerSecond = { nodeMicros, postgresMicros, statements, logBytes }
  return { perJob: { light: await measure('light'), heavy: await measure('heavy') }, idlePerSecond }
}

/** Each client submits a job, follows its stream to the end, polls it once, fetches its picture. The bytes that were fetched. */
async function runJobs(
  nodes: readonly ServerChild[],
  { perNode, clients }: { readonly perNode: number; readonly clients: number },
): Promise<number> {
  let bytes = 0
  await Promise.all(
    nodes.map(async ({ url }) => {
      let left = perNode
      const client = async () => {
        while (left-- > 0) {
          const fetched = await runJob(url, left)
          bytes += fetched
        }
      }
      await Promise.all(Array.from({ length: clients }, client))
    }),
  )
  return bytes
}

async function runJob(url: string, color: number): Promise<number> {
  const body = JSON.stringify({ workflow: freshWorkflow(color) })
  const { id } = await readJson<{ id: string }>(await ask(`${url}/api/v2/jobs`, { method: 'POST', body }))
  await (await ask(`${url}/api/v2/jobs/${id}/events`)).text()
  type Ended = { readonly status: string; readonly outputs: readonly { readonly url: string }[] }
  const { status, outputs } = await readJson<Ended>(await ask(`${url}/api/v2/jobs/${id}`))
  if (status !== 'succeeded') throw new Error(`job ${id} is ${status}`)
  const picture = await ask(new URL(outputs[0].url, url))
  if (!picture.ok) throw new Error(`${picture.url} answered ${picture.status}`)
  return (await picture.arrayBuffer()).byteLength
}

/** On a connection of its own: one that is kept may be closed by the other side at the moment it is used again. */
function ask(url: string | URL, { method = 'GET', body }: { method?: string; body?: string } = {}): Promise<Response> {
  return fetch(url, { method, headers: { connection: 'close' }, ...(body !== undefined && { body }) })
}

async function readJson<Body>(answer: Response): Promise<Body> {
  if (!answer.ok) throw new Error(`${answer.url} answered ${answer.status}: ${await answer.text()}`)
  return (await answer.json()) as Body
}

/** On processes that only answer, so that nothing runs beside what is measured. */
async function measureRequests(setup: Setup): Promise<Pick<MeasuredRun, 'perSubmit' | 'perPoll'>> {
  await using started = await startNodes(setup)
  const { nodes } = started
  const body = JSON.stringify({ workflow: freshWorkflow(1) })
  const { id } = await readJson<{ id: string }>(await fetch(`${nodes[0].url}/api/v2/jobs`, { method: 'POST', body }))
  const ROUND = { connections: CLIENTS.heavy, seconds: LOAD_SECONDS }
  const submits = { ...ROUND, path: '/api/v2/jobs', method: 'POST', body, expectStatus: 201 } as const
  const polls = { ...ROUND, path: `/api/v2/jobs/${id}`, expectStatus: 200 } as const
  const measure = async (load: typeof submits | typeof polls) => {
    let count = 0
    const round = async () => {
      const results = await Promise.all(nodes.map((node) => measureLoad(node, load)))
      count = results.reduce((sum, { answered }) => sum + answered, 0)
    }
    await round()
    const spent = await measureSpent({ nodes, server: setup.server }, round)
    return perOne(spent, count)
  }
  return { perSubmit: await measure(submits), perPoll: await measure(polls) }
}
