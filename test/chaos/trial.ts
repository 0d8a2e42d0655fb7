/**
 * One trial: a world is opened, clients load it while faults strike, and when both are over everything that a client was told is
 * looked up again and the books are read. What does not fit is a flaw; a trial without any has passed.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createClient } from '../../lib/postgres/driver.ts'
import { checkBooks } from './check/check-books.ts'
import { checkBytes } from './check/check-bytes.ts'
import { checkCancels } from './check/check-cancels.ts'
import { checkEngines } from './check/check-engines.ts'
import { checkTold, type Flaw, of } from './check/check-told.ts'
import { watchLimits } from './check/watch-limits.ts'
import type { PlannedFault } from './faults/plan-faults.ts'
import { type FaultRecord, strike } from './faults/strike.ts'
import type { LoadNews, LoadPlan, LoadRates } from './load/main.ts'
import { readJournal, type ToldAt } from './load/told.ts'
import { type Evidence, gatherEvidence } from './report/evidence.ts'
import { openWorld, type World, type WorldShape } from './world/world.ts'

export interface TrialOptions {
  readonly seed: number
  readonly shape: WorldShape
  readonly rates: LoadRates
  readonly faults: readonly PlannedFault[]
  /** The load goes on for so long, */
  readonly lastsMs: number
  /** and until so much is acknowledged. */
  readonly atLeast?: LoadRates
  readonly say?: (line: string) => void
  /** Keeps logs and journal here; left out: they go with the trial. */
  readonly keepIn?: string
}

export interface TrialReport {
  readonly seed: number
  readonly shape: WorldShape
  readonly rates: LoadRates
  readonly startedAt: string
  readonly loadMs: number
  readonly tookMs: number
  readonly acknowledged: Readonly<Record<'jobs' | 'uploads' | 'calls' | 'streams' | 'sockets', number>>
  /** Jobs by how they ended. */
  readonly ends: Readonly<Record<string, number>>
  /** Answers that asked for patience. */
  readonly refused: Readonly<Record<string, number>>
  readonly faults: readonly FaultRecord[]
  readonly failOvers: number
  /** Ids of jobs that were given up after as many attempts as a job has: all its workers died. */
  readonly givenUp: readonly string[]
  /** Keys of calls whose result a client has and nobody was charged for: their nodes were away from the store for longer than a lease. */
  readonly unpaid: readonly string[]
  /** How often the limits of accounts were looked at. */
  readonly looksAtLimits: number
  readonly flaws: readonly Flaw[]
  readonly evidence: readonly Evidence[]
}

const LOAD_MAIN = fileURLToPath(new URL('./load/main.ts', import.meta.url))
const CLIENTS_GIVE_UP_MS = 600_000
const SETTLE_GIVE_UP_MS = 300_000
const NEWS_EVERY_MS = 30_000
const LOOK_EVERY_MS = 500
const NOTHING = { jobs: 0, calls: 0, uploads: 0 }
const KINDS = ['jobs', 'calls', 'uploads'] as const

export async function runTrial(options: TrialOptions): Promise<TrialReport> {
  const folder = options.keepIn ?? (await mkdtemp(join(tmpdir(), 'atelier-chaos-')))
  await using cleaning = new AsyncDisposableStack()
  if (options.keepIn === undefined) cleaning.defer(() => rm(folder, { recursive: true, force: true }))
  const startedAt = new Date()
  const startedMs = performance.now()
  const { say = () => {} } = options
  await using world = await openWorld(options.shape, folder)
  say(`the world is open after ${seconds(performance.now() - startedMs)}`)
  const journalPath = join(folder, 'told.ndjson')
  const loadStartedMs = performance.now()
  const ending = new AbortController()
  const watching = watchLimits(world, ending.signal)
  const { faults, flaws: found } = await runLoad(world, options, journalPath)
  const loadMs = performance.now() - loadStartedMs
  const told = readJournal(journalPath)
  say(`the load is over: ${JSON.stringify(countTold(told))}`)
  const flaws: Flaw[] = [...found, ...of(told, 'flaw').map(({ kind, text, id, at }) => ({ kind, text, id, at }))]
  const { flaws: broken, ends, excused: givenUp } = await checkTold(world, told)
  flaws.push(...broken, ...(await settle(world)))
  ending.abort()
  const { flaws: above, looks } = await watching
  const { flaws: ofEngines, finished } = await checkEngines(world, { told, faults })
  flaws.push(...above, ...ofEngines)
  flaws.push(...checkCancels({ told, ends, finished: world.engines.length === 0 ? null : finished }))
  await world.stopNodes()
  for (const { deaths } of [...world.apis, ...world.workers])
    for (const text of deaths) flaws.push({ kind: 'died', text, id: null, at: null })
  const { flaws: ofBooks, unpaid } = await checkBooks(world, { told, excused: givenUp })
  flaws.push(...ofBooks, ...(await checkBytes(world)))
  return {
    seed: options.seed,
    shape: options.shape,
    rates: options.rates,
    startedAt: startedAt.toISOString(),
    loadMs: Math.round(loadMs),
    tookMs: Math.round(performance.now() - startedMs),
    acknowledged: countTold(told),
    ends: countBy([...ends.values()]),
    refused: countBy(of(told, 'refused').map(({ word }) => word)),
    faults,
    failOvers: world.postgres.failOvers,
    givenUp,
    unpaid,
    looksAtLimits: looks,
    flaws,
    evidence: await gatherEvidence({ world, told, faults, flaws }),
  }
}

/** Clients and faults together; resolves when the last client has what it wanted. */
async function runLoad(
  world: World,
  { seed, rates, faults, lastsMs, atLeast = NOTHING, say = () => {} }: TrialOptions,
  journalPath: string,
): Promise<{ faults: FaultRecord[]; flaws: Flaw[] }> {
  const plan: LoadPlan = {
    seed,
    fronts: world.apis.map(({ front }) => `http://127.0.0.1:${front.port}`),
    accounts: world.accounts.map(({ id, key }) => ({ id, key })),
    deployments: world.deployments,
    hasEngines: world.engines.length > 0,
    journalPath,
    rates,
  }
  const planFile = join(world.folder, 'load.json')
  await writeFile(planFile, JSON.stringify(plan), { mode: 0o600 })
  const child = fork(LOAD_MAIN, [planFile], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const exited = once(child, 'exit')
  let news: LoadNews = { begun: NOTHING, open: NOTHING, acknowledged: NOTHING }
  const isEnough = () => KINDS.every((kind) => news.acknowledged[kind] >= atLeast[kind])
  child.on('message', (message) => {
    news = message as LoadNews
  })
  const reporter = setInterval(
    () => say(`acknowledged ${JSON.stringify(news.acknowledged)}, open ${JSON.stringify(news.open)}`),
    NEWS_EVERY_MS,
  )
  const ending = new AbortController()
  exited.then(() => ending.abort())
  try {
    const endAt = performance.now() + lastsMs
    const records = await strike({ world, faults, signal: ending.signal, say })
    await pause(Math.max(0, endAt - performance.now()), undefined, { signal: ending.signal }).catch(() => {})
    while (child.connected && !isEnough()) await pause(LOOK_EVERY_MS)
    if (child.connected) child.send('stop')
    const isOver = await Promise.race([exited.then(() => true), pause(CLIENTS_GIVE_UP_MS, false, { ref: false })])
    const text = isOver
      ? `the clients ended with ${child.exitCode ?? child.signalCode}`
      : `clients never came to an end: ${JSON.stringify(news.open)} sessions are open`
    if (isOver && child.exitCode === 0) return { faults: records, flaws: [] }
    return { faults: records, flaws: [{ kind: 'lost', text, id: null, at: Date.now() }] }
  } finally {
    clearInterval(reporter)
    child.kill('SIGKILL')
    await exited
  }
}

/** Also what nobody was told of, such as a prompt whose answer was lost, must come to its end. */
async function settle(world: World): Promise<Flaw[]> {
  const giveUpAt = performance.now() + SETTLE_GIVE_UP_MS
  const client = createClient({ url: world.databaseUrl() })
  await client.connect()
  try {
    for (;;) {
      const { rows } = await client.query(
        `SELECT 'job ' || id || ' is ' || status AS what FROM job
         UNION ALL SELECT 'call ' || account_id FROM router_account WHERE running + costly + committed_micros <> 0
         UNION ALL SELECT 'hold ' || id FROM ledger_hold`,
      )
      if (rows.length === 0) return []
      if (performance.now() > giveUpAt) {
        const text = `${rows.length} things never ended, such as ${rows[0].what}`
        return [{ kind: 'left over', text, id: null, at: null }]
      }
      await pause(250)
    }
  } finally {
    await client.end()
  }
}

function countTold(told: readonly ToldAt[]): TrialReport['acknowledged'] {
  const watched = of(told, 'watched')
  return {
    jobs: of(told, 'job').length,
    uploads: of(told, 'asset').length,
    calls: new Set(of(told, 'call').map(({ key }) => key)).size,
    streams: watched.filter(({ by }) => by === 'stream').length,
    sockets: watched.filter(({ by }) => by === 'socket').length,
  }
}

export function countBy(words: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1
  return counts
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}
