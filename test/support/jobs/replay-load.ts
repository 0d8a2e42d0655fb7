/**
 * A load of jobs over servers that compute nothing, with a clock of its own: every job is submitted, claimed and ended in a real store,
 * and takes the time that the load says. For tests of who is next, and for the bench that compares rules.
 */
import { randomUUID } from 'node:crypto'
import type { Job } from '../../../src/domain/jobs/job.ts'
import type { ClaimRequest, JobStore, NewJob } from '../../../src/domain/jobs/job-store.ts'
import { createLaneTable, type LaneTable } from '../../../src/domain/workflows/needs.ts'

export interface Arrival {
  readonly atMs: number
  readonly runMs: number
  readonly accountId: string
  /** What it needs, and what a server has loaded after it. */
  readonly lane: string
  /** Loaded in addition, unless the run before it on the server had the same; null: nothing. */
  readonly addition?: string | null
}

export interface Costs {
  readonly switchMs: number
  readonly additionMs: number
}

export interface Replay {
  readonly arrivals: readonly Arrival[]
  readonly servers: number
  readonly costs: Costs
  readonly rule: Required<Pick<ClaimRequest, 'maxOvertakes' | 'creditMs'>>
  readonly pool?: string
  /** Heard now and then: how many of the load's jobs have begun. */
  readonly report?: (begun: number) => void
}

const REPORT_EVERY = 1_000

export interface ReplayedRun {
  readonly arrival: Arrival
  readonly startedAtMs: number
  readonly endedAtMs: number
}

export interface Replayed {
  /** In the order of their claims. */
  readonly runs: readonly ReplayedRun[]
  readonly switches: number
  readonly makespanMs: number
}

interface Server {
  readonly id: string
  loaded: string | null
  addition: string | null
  usedAtMs: number
  busy: (ReplayedRun & { readonly jobId: string; readonly leaseId: string }) | null
}

const START_MS = Date.UTC(2026, 0, 1)
const RETENTION_MS = 365 * 86_400_000

type Jobs = Pick<JobStore, 'submit' | 'claim' | 'commit'>

export async function replayLoad(jobs: Jobs, replay: Replay): Promise<Replayed> {
  const { arrivals, costs, rule, pool = randomUUID(), report = () => {} } = replay
  const servers = Array.from({ length: replay.servers }, (_, index): Server => {
    return { id: `server-${index}`, loaded: null, addition: null, usedAtMs: 0, busy: null }
  })
  const lanes = createLaneTable({ maxLanes: 100_000 })
  const byId = new Map<string, Arrival>()
  const waitingIn = new Map<string, number>()
  const runs: ReplayedRun[] = []
  let [nowMs, next, waiting, switches] = [0, 0, 0, 0]

  async function arrive(arrival: Arrival): Promise<void> {
    const outcome = await jobs.submit(toJob(arrival, pool), null)
    if (outcome.outcome !== 'queued') throw new Error(`a submit was answered with ${outcome.outcome}`)
    byId.set(outcome.job.id, arrival)
    lanes.learn(arrival.lane, { key: arrival.lane, classes: [], choices: [], weights: [arrival.lane] })
    waiting += 1
    waitingIn.set(arrival.lane, (waitingIn.get(arrival.lane) ?? 0) + 1)
  }

  async function end(server: Server): Promise<void> {
    const { busy } = server
    if (busy === null) return
    server.busy = null
    const { jobId, leaseId, arrival, startedAtMs, endedAtMs } = busy
    const finish = { status: 'succeeded', from: ['running', 'canceling'], at: toDate(nowMs), error: null } as const
    const { outcome } = await jobs.commit({ jobId, leaseId }, { finish })
    if (outcome !== 'committed') throw new Error('a run lost its lease')
    lanes.noteRun(arrival.lane, endedAtMs - startedAtMs)
  }

  /** False: nothing waits that a free server may have. */
  async function claim(): Promise<boolean> {
    const free = servers.filter(({ busy }) => busy === null)
    if (waiting === 0 || free.length === 0) return false
    const leaseId = randomUUID()
    const claimed = await jobs.claim({
      ...{ pool, workerId: 'replay', leaseId, now: toDate(nowMs), leaseUntil: toDate(nowMs + RETENTION_MS) },
      ...rule,
      engines: offersOf(free, servers, lanes, waitingIn),
    })
    if (claimed === null) return false
    waiting -= 1
    const server = servers.find(({ id }) => id === claimed.engineId)
    if (server === undefined) throw new Error('a claim names a server that offered nothing')
    begin(server, claimed.job, leaseId)
    return true
  }

  function begin(server: Server, job: Job, leaseId: string): void {
    const arrival = byId.get(job.id)
    if (arrival === undefined) throw new Error('a job was claimed that nobody submitted')
    byId.delete(job.id)
    waitingIn.set(arrival.lane, (waitingIn.get(arrival.lane) ?? 1) - 1)
    const { lane, addition = null, runMs } = arrival
    const isSwitch = server.loaded !== lane
    const loadsMore = addition !== null && (isSwitch || server.addition !== addition)
    if (isSwitch) switches += 1
    const tookMs = runMs + (isSwitch ? costs.switchMs : 0) + (loadsMore ? costs.additionMs : 0)
    const run = { arrival, startedAtMs: nowMs, endedAtMs: nowMs + tookMs }
    Object.assign(server, { loaded: lane, addition, usedAtMs: nowMs, busy: { ...run, jobId: job.id, leaseId } })
    runs.push(run)
    if (runs.length % REPORT_EVERY === 0) report(runs.length)
  }

  while (next < arrivals.length || servers.some(({ busy }) => busy !== null)) {
    const ending = servers.reduce<Server | null>(
      (first, server) => (endOf(server) < endOf(first) ? server : first),
      null,
    )
    const arrival = arrivals[next]
    if (arrival !== undefined && arrival.atMs < endOf(ending)) {
      nowMs = arrival.atMs
      next += 1
      await arrive(arrival)
    } else if (ending !== null) {
      nowMs = endOf(ending)
      await end(ending)
    }
    while (await claim());
  }
  if (waiting > 0) throw new Error(`${waiting} jobs were never claimed`)
  return { runs, switches, makespanMs: nowMs }
}

/** As a fleet offers its servers: those without weights first, then the one that was used longest ago. Lanes without a job change nothing. */
function offersOf(
  free: readonly Server[],
  all: readonly Server[],
  lanes: LaneTable,
  waitingIn: ReadonlyMap<string, number>,
): ClaimRequest['engines'] {
  const rankOf = (server: Server, lane: string) =>
    server.loaded === lane ? 0 : 2 + all.filter((other) => other !== server && other.loaded === lane).length
  const order = free.toSorted(
    (one, other) => Number(one.loaded !== null) - Number(other.loaded !== null) || one.usedAtMs - other.usedAtMs,
  )
  const waiting = lanes.lanes().filter((lane) => (waitingIn.get(lane) ?? 0) > 0)
  return order.map((server) => ({
    engineId: server.id,
    lanes: waiting.map((lane) => ({ lane, rank: rankOf(server, lane), foreseenMs: lanes.foreseenMs(lane) })),
  }))
}

function endOf(server: Server | null): number {
  return server?.busy?.endedAtMs ?? Number.POSITIVE_INFINITY
}

function toDate(ms: number): Date {
  return new Date(START_MS + ms)
}

function toJob({ atMs, accountId, lane }: Arrival, pool: string): NewJob {
  const createdAt = toDate(atMs)
  return {
    ...{ id: randomUUID(), accountId, pool, priority: 0, metadata: {}, createdAt, needs: lane },
    expiresAt: new Date(createdAt.getTime() + RETENTION_MS),
    workflow: '{"1":{"class_type":"Nothing","inputs":{}}}',
    inputs: [],
    needsExtraData: false,
    sealedExtraData: null,
  }
}
