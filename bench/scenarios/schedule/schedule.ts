/**
 * Whose turn it is: a load of picture jobs over 8 and 12 servers, through the claims of both stores, with a clock and servers that are
 * simulated; a change of weights costs 22.7 s and a LoRA 4.4 s, as measured where the trace was taken. Against submit order, loaded weights
 * first whatever that costs others, and the rule before (a model: the program has it no more).
 *
 *   npm run bench schedule [requests.csv.gz]     # without a file a load is drawn
 *
 * Of a file the first 20,000 requests are replayed at most. Eight replays run beside one another: the present rule on both stores, the two
 * others on SQLite, each with 8 and with 12 servers. Each result is printed as soon as it is there.
 */
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openPostgresStore } from '../../../src/adapters/store/postgres/open-postgres-store.ts'
import { openSqliteStore } from '../../../src/adapters/store/sqlite/open-sqlite-store.ts'
import { CREDIT_MS, MAX_OVERTAKES } from '../../../src/domain/jobs/claim/worker-options.ts'
import type { Store } from '../../../src/domain/store.ts'
import { type Arrival, type Replay, type Replayed, replayLoad } from '../../../test/support/jobs/replay-load.ts'
import { startPostgres } from '../../../test/support/postgres/postgres-server.ts'
import { type Figure, toTable } from '../../kit/figure.ts'
import { replayFormerRule } from './former-rule.ts'
import { drawTrace, readTrace } from './trace.ts'

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
const SERVERS = [8, 12] as const
const COSTS = { switchMs: 22_700, additionMs: 4_400 }
/** An account with at most so many jobs in the whole load is a light one. */
const LIGHT_JOBS = 10
const ANY = Number.MAX_SAFE_INTEGER / 4

const RULES: Readonly<Record<string, Replay['rule']>> = {
  shares: { maxOvertakes: MAX_OVERTAKES, creditMs: CREDIT_MS },
  'submit order': { maxOvertakes: 0, creditMs: ANY },
  'loaded first': { maxOvertakes: 2_000_000_000, creditMs: ANY },
}
const IN_MEMORY = '/dev/shm'
const HEAD = ['servers', 'rule', 'loads', 'makespan', 'mean wait', 'p95', 'p95 light', 'Jain']

interface Outcome {
  readonly switches: number
  readonly makespanHours: number
  readonly meanWaitS: number
  readonly p95WaitS: number
  readonly p95LightWaitS: number
  readonly jain: number
}

export async function schedule(path: string | null): Promise<Figure[]> {
  const arrivals = path === null ? drawTrace(DAY_MS) : readTrace(path, DAY_MS)
  const rows: string[][] = []
  const figures: Figure[] = []
  const tell = (servers: number, rule: string, outcome: Outcome) => {
    const row = [String(servers), rule, ...toCells(outcome)]
    rows.push(row)
    console.log(row.join(' | '))
  }
  const former = new Map(
    SERVERS.map((servers) => [servers, judge(arrivals, replayFormerRule(arrivals, servers, COSTS))] as const),
  )
  for (const [servers, outcome] of former) tell(servers, 'before', outcome)
  await using sqlite = await openSqlite()
  await using postgres = await openPostgres()
  const stores = { SQLite: sqlite.store, Postgres: postgres.store }
  const replayAll = async (name: keyof typeof stores, servers: (typeof SERVERS)[number]) => {
    for (const [rule, bounds] of Object.entries(RULES)) {
      // The two others are there to compare with; one store shows them.
      if (rule !== 'shares' && name === 'Postgres') continue
      const report = (begun: number) => console.error(`${name}, ${rule}, ${servers} servers: ${begun} jobs`)
      const outcome = judge(arrivals, await replayOn(stores[name], arrivals, { servers, rule: bounds, report }))
      tell(servers, `${rule}, ${name}`, outcome)
      const before = former.get(servers)
      if (rule === 'shares' && before !== undefined)
        figures.push(...toFigures(`${servers} servers, ${name}`, outcome, before))
    }
  }
  // Each waits for its store most of the time.
  await Promise.all(SERVERS.flatMap((servers) => [replayAll('SQLite', servers), replayAll('Postgres', servers)]))
  const order = ['before', ...Object.keys(RULES)]
  const place = ([servers = '', rule = '']: readonly string[]) =>
    Number(servers) * 10 + order.findIndex((name) => rule.startsWith(name))
  console.log(
    `\n${toTable(
      rows.toSorted((one, other) => place(one) - place(other)),
      HEAD,
    )}\n`,
  )
  return figures
}

async function replayOn(
  store: Store,
  arrivals: readonly Arrival[],
  setting: Pick<Replay, 'servers' | 'rule' | 'report'>,
): Promise<Replayed> {
  // Accounts of their own for every replay: what they used in another one is nothing to this.
  const ids = new Map<string, string>(
    [...new Set(arrivals.map(({ accountId }) => accountId))].map((name) => [name, randomUUID()]),
  )
  for (const id of ids.values()) await store.accounts.put({ id, maxRunning: 1_000, maxQueued: 1_000_000 })
  const own = arrivals.map((arrival) => ({ ...arrival, accountId: ids.get(arrival.accountId) ?? '' }))
  const { runs, ...rest } = await replayLoad(store.jobs, { arrivals: own, costs: COSTS, ...setting })
  const names = new Map([...ids].map(([name, id]) => [id, name]))
  const toName = (arrival: Arrival) => ({ ...arrival, accountId: names.get(arrival.accountId) ?? '' })
  return { ...rest, runs: runs.map((run) => ({ ...run, arrival: toName(run.arrival) })) }
}

function judge(arrivals: readonly Arrival[], replayed: Replayed): Outcome {
  const jobs = Map.groupBy(arrivals, ({ accountId }) => accountId)
  const waits = replayed.runs.map(({ arrival, startedAtMs }) => ({ arrival, waitMs: startedAtMs - arrival.atMs }))
  const light = waits.filter(({ arrival }) => (jobs.get(arrival.accountId)?.length ?? 0) <= LIGHT_JOBS)
  return {
    switches: replayed.switches,
    makespanHours: replayed.makespanMs / HOUR_MS,
    meanWaitS: waits.reduce((sum, { waitMs }) => sum + waitMs, 0) / waits.length / 1000,
    p95WaitS: p95(waits),
    p95LightWaitS: p95(light),
    jain: jainIndex(replayed),
  }
}

function p95(waits: readonly { readonly waitMs: number }[]): number {
  const sorted = waits.map(({ waitMs }) => waitMs).sort((one, other) => one - other)
  return (sorted[Math.floor(sorted.length * 0.95)] ?? 0) / 1000
}

/** Of the servers' time, hour by hour, among accounts that had a job waiting all the hour: 1 where each got as much; the mean by accounts. */
function jainIndex({ runs, makespanMs }: Replayed): number {
  let [weighted, counted] = [0, 0]
  for (let from = 0; from < makespanMs; from += HOUR_MS) {
    const to = from + HOUR_MS
    const inside = runs.filter(({ arrival, endedAtMs }) => arrival.atMs < to && endedAtMs > from)
    const byAccount = Map.groupBy(inside, ({ arrival }) => arrival.accountId)
    const shares = [...byAccount.values()].flatMap((own) => {
      const waitsAllHour = own.some(({ arrival, startedAtMs }) => arrival.atMs <= from && startedAtMs >= to)
      const gotMs = own.reduce((sum, run) => sum + overlapMs(run, from, to), 0)
      return waitsAllHour ? [gotMs] : []
    })
    if (shares.length < 2) continue
    const sum = shares.reduce((total, each) => total + each, 0)
    const squares = shares.reduce((total, each) => total + each * each, 0)
    weighted += squares === 0 ? shares.length : (sum * sum) / squares
    counted += shares.length
  }
  return counted === 0 ? 1 : weighted / counted
}

function overlapMs(
  run: { readonly startedAtMs: number; readonly endedAtMs: number },
  from: number,
  to: number,
): number {
  return Math.max(0, Math.min(run.endedAtMs, to) - Math.max(run.startedAtMs, from))
}

function toCells({ switches, makespanHours, meanWaitS, p95WaitS, p95LightWaitS, jain }: Outcome): string[] {
  const seconds = (value: number) => `${value.toFixed(0)} s`
  return [
    String(switches),
    `${makespanHours.toFixed(1)} h`,
    seconds(meanWaitS),
    seconds(p95WaitS),
    seconds(p95LightWaitS),
    jain.toFixed(2),
  ]
}

function toFigures(where: string, now: Outcome, former: Outcome): Figure[] {
  const figure = (name: string, measured: number, bar: number): Figure => {
    return { name: `${name} (${where})`, measured, unit: '%', bar, direction: 'at_most', detail: { now, former } }
  }
  return [
    figure('loads of weights, of those before', now.switches / former.switches, 0.65),
    figure('p95 wait of light accounts, of that before', now.p95LightWaitS / former.p95LightWaitS, 0.45),
  ]
}

async function openSqlite() {
  // In memory where there is such a folder: its clock is simulated, and nothing has to outlive it.
  const root = existsSync(IN_MEMORY) ? IN_MEMORY : tmpdir()
  const directory = await mkdtemp(join(root, 'atelier-schedule-'))
  const store = await openSqliteStore({ directory })
  return {
    store,
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

async function openPostgres() {
  const server = await startPostgres()
  const store = await openPostgresStore({ url: server.url })
  return {
    store,
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    },
  }
}
