/**
 * What it costs that a job runs in another process than the one that its clients talk to. Three processes: one takes the prompt, one
 * runs it, and clients listen at the third, and at the second for comparison: the extra way of an event is what lies between the
 * two. Then what notices cost the commits of others, and what processes that do nothing ask of their database.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { silentLog } from '../../lib/log.ts'
import { createClient } from '../../lib/postgres/driver.ts'
import type { ProcessBus } from '../../src/adapters/bus/bus-health.ts'
import { openPostgresNotifyBus } from '../../src/adapters/bus/postgres-notify.ts'
import { openPostgresStore } from '../../src/adapters/store/postgres/open-postgres-store.ts'
import type { SpawnedServer } from '../../test/support/app/spawn-server.ts'
import { LinkNetwork } from '../../test/support/bus/link-network.ts'
import { openEvents } from '../../test/support/clients/event-reader.ts'
import { LegacyClient } from '../../test/support/clients/legacy-client.ts'
import { openRoleProcesses } from '../../test/support/cluster/role-processes.ts'
import { startFakeComfy } from '../../test/support/engines/fake-comfyui/fake-comfyui.ts'
import { startPostgres } from '../../test/support/postgres/postgres-server.ts'
import { waitUntil } from '../../test/support/wait-until.ts'
import type { Figure } from '../kit/figure.ts'

const SOCKET_JOBS = 10
const STREAM_JOBS = 5
const IDLE_MS = 20_000
const NOTICE_ROUND_MS = 3000
const NOTICE_ROUNDS = 4
const NOTICE_NODES = 4
const NOTICES_PER_TURN = 5

function graphOf(seed: number, steps: number, ms: number) {
  return {
    '1': { class_type: 'EmptyImage', inputs: { width: 256, height: 256, batch_size: 1, color: seed } },
    '2': { class_type: 'DemoSteps', inputs: { steps, ms, preview: true, image: ['1', 0], seed } },
    '3': { class_type: 'SaveImage', inputs: { images: ['2', 0], filename_prefix: 'bus' } },
  }
}

export async function bus(): Promise<Figure[]> {
  return [...(await measureWay()), await measureNotices()]
}

async function measureWay(): Promise<Figure[]> {
  await using processes = await openRoleProcesses()
  await using fake = await startFakeComfy({})
  const [here, taker] = [await processes.api(), await processes.api()]
  const runner = await processes.all(['--comfyui', fake.url.href])
  for (const { url } of [here, taker])
    await waitUntil(async () => 'SaveImage' in (await new LegacyClient(url).get('/object_info')).json)
  const cluster = { here, taker, runner }
  const sockets = await measureSockets(cluster)
  const streams = await measureStreams(cluster)
  const idle = await measureIdle(processes.databaseUrl)
  return [
    toWayFigure('the extra way of an event to a socket at another process (p99)', sockets),
    toWayFigure('the extra way of an event to a stream at another process (p99)', streams),
    {
      name: 'transactions of an idle process',
      measured: idle / 3,
      unit: '/s',
      bar: 2,
      direction: 'at_most',
      detail: { processes: 3, overMs: IDLE_MS },
    },
  ]
}

interface Cluster {
  readonly here: SpawnedServer
  readonly taker: SpawnedServer
  readonly runner: SpawnedServer
}

/** By event, when it came; an event that comes several times is counted. */
type Arrivals = Map<string, number>

function note(arrivals: Arrivals, words: string): void {
  let key = words
  for (let count = 2; arrivals.has(key); count++) key = `${words} (${count})`
  arrivals.set(key, performance.now())
}

interface Way {
  readonly extraMs: readonly (readonly [words: string, ms: number])[]
  readonly missing: readonly string[]
}

function compare(near: Arrivals, far: Arrivals): Way {
  const both = [...near].filter(([key]) => far.has(key))
  return {
    extraMs: both.map(([key, atMs]) => [key, (far.get(key) ?? 0) - atMs]),
    missing: [...near.keys()].filter((key) => !far.has(key)),
  }
}

function toWayFigure(name: string, ways: readonly Way[]): Figure {
  const named = ways.flatMap(({ extraMs }) => extraMs).toSorted(([, one], [, other]) => one - other)
  const extra = named.map(([, ms]) => ms)
  const at = (share: number) => extra[Math.min(extra.length - 1, Math.floor(extra.length * share))]
  const missing = ways.flatMap((way) => way.missing)
  return {
    name,
    measured: missing.length > 0 ? Number.POSITIVE_INFINITY : at(0.99),
    unit: 'ms',
    bar: 50,
    direction: 'at_most',
    detail: { events: extra.length, p50: at(0.5), p90: at(0.9), worst: named.slice(-5), missing: missing.slice(0, 10) },
  }
}

async function measureSockets({ here, taker, runner }: Cluster): Promise<Way[]> {
  const ways: Way[] = []
  for (let job = 0; job < SOCKET_JOBS; job++) {
    const clientId = `bench-${job}`
    const [near, far] = [await hearSocket(runner, clientId), await hearSocket(here, clientId)]
    await new LegacyClient(taker.url).accepted(graphOf(job, 15, 120), { client_id: clientId })
    await Promise.all([near.ended, far.ended])
    ways.push(compare(near.arrivals, far.arrivals))
    near.close()
    far.close()
  }
  return ways
}

async function hearSocket({ url }: SpawnedServer, clientId: string) {
  const arrivals: Arrivals = new Map()
  const ended = Promise.withResolvers<void>()
  const ws = new WebSocket(`${url.replace('http', 'ws')}/ws?clientId=${clientId}`)
  ws.on('message', (data: Buffer, isBinary) => {
    if (isBinary) {
      note(arrivals, `preview ${data.subarray(-60).toString('hex')}`)
      return
    }
    const { type, data: said } = JSON.parse(data.toString()) as { type: string; data: Record<string, unknown> }
    if (type === 'status') return
    note(arrivals, `${type} ${said['node']} ${said['value']}`)
    if (type === 'executing' && said['node'] === null) ended.resolve()
  })
  await new Promise((resolve) => ws.once('open', resolve))
  return { arrivals, ended: ended.promise, close: () => ws.close() }
}

/** As many steps as a stream shows, two a second: whatever holds one of them up is seen in those that follow it. */
async function measureStreams({ here, taker, runner }: Cluster): Promise<Way[]> {
  const ways: Way[] = []
  for (let job = 0; job < STREAM_JOBS; job++) {
    const id = await new LegacyClient(taker.url).accepted(graphOf(1000 + job, 12, 500))
    const [near, far] = await Promise.all([runner, here].map((server) => hearStream(server, id)))
    const { extraMs, missing } = compare(near, far)
    // The first one opens the way for all that follow. Where a stream begins depends on when it was opened.
    if (job > 0) ways.push({ extraMs, missing: missing.filter((key) => key.startsWith('preview')).slice(2) })
  }
  return ways
}

async function hearStream({ url }: SpawnedServer, id: string): Promise<Arrivals> {
  const arrivals: Arrivals = new Map()
  using events = openEvents(url, `/api/v2/jobs/${id}/events`, { Accept: 'text/event-stream' })
  while (true) {
    const frame = await events.next()
    if (frame === null) return arrivals
    if (frame.event !== 'comment') note(arrivals, `${frame.event} ${JSON.stringify(frame.data).slice(-200)}`)
  }
}

async function measureIdle(url: string): Promise<number> {
  const sql = createClient({ url })
  await sql.connect()
  const count = async () => {
    const { rows } = await sql.query<{ n: string }>(
      'SELECT xact_commit + xact_rollback AS n FROM pg_stat_database WHERE datname = current_database()',
    )
    return Number(rows[0].n)
  }
  // Until the last job's traces are gone, and what was counted is told.
  await pause(15_000)
  const before = await count()
  await pause(IDLE_MS)
  const perSecond = ((await count()) - before) / (IDLE_MS / 1000)
  await sql.end()
  return perSecond
}

/** Durable submits while four processes tell each other as much as they can, against submits while nobody says anything. */
async function measureNotices(): Promise<Figure> {
  await using server = await startPostgres({ isDurable: true })
  await using store = await openPostgresStore({ url: server.url })
  await store.accounts.put({ id: 'account', maxRunning: 1, maxQueued: 10_000_000 })
  await using stack = new AsyncDisposableStack()
  const network = new LinkNetwork()
  const buses: ProcessBus[] = []
  for (let index = 0; index < NOTICE_NODES; index++) {
    const { id: nodeId, links } = stack.use(await network.join(`node-${index}`))
    buses.push(stack.use(await openPostgresNotifyBus({ url: server.url, nodeId, links, log: silentLog })))
  }
  const quiet: number[] = []
  const told: number[] = []
  let lines = 0
  for (let round = 0; round < NOTICE_ROUNDS; round++) {
    quiet.push(await countSubmits(store))
    const talking = setInterval(() => {
      for (const each of buses)
        for (let index = 0; index < NOTICES_PER_TURN; index++) {
          const notice = { jobId: `job-${lines}`, accountId: 'account', version: lines++ }
          each.publishChanged({ ...notice, move: 'queued' })
        }
    }, 20)
    told.push(await countSubmits(store))
    clearInterval(talking)
  }
  const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0)
  return {
    name: 'durable submits while four processes tell notices, against none',
    measured: sum(told) / sum(quiet),
    unit: '%',
    bar: 0.6,
    direction: 'at_least',
    detail: { quiet, told, linesPerSecond: lines / ((NOTICE_ROUNDS * NOTICE_ROUND_MS) / 1000) },
  }
}

async function countSubmits(store: Awaited<ReturnType<typeof openPostgresStore>>): Promise<number> {
  const until = performance.now() + NOTICE_ROUND_MS
  const createdAt = new Date()
  const rest = {
    ...{ accountId: 'account', pool: 'default', priority: 0, metadata: {}, workflow: '{}', inputs: [], needs: '' },
    ...{ needsExtraData: false, sealedExtraData: null, createdAt, expiresAt: new Date(Date.now() + 86_400_000) },
  }
  let count = 0
  const submit = async () => {
    while (performance.now() < until) {
      await store.jobs.submit({ id: crypto.randomUUID(), ...rest }, null)
      count++
    }
  }
  await Promise.all(Array.from({ length: 16 }, submit))
  return count
}
