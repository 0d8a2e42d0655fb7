/**
 * Keeps the knowledge of lanes in step with the queue: lanes that another process made, or that waited across a restart,
 * are learnt from one of their jobs; jobs of a lane that no engine can serve any more end instead of waiting for ever.
 */
import type { Clock } from '../../../../lib/clock.ts'
import type { NewId } from '../../../../lib/ids.ts'
import type { Log } from '../../../../lib/log.ts'
import { createTurns, type Turns } from '../../../../lib/waiting/turns.ts'
import { readCopyPool } from '../../engine/copy-pool.ts'
import type { EngineDirectory } from '../../engine/directory/engine-directory.ts'
import { ANY_LANE } from '../../workflows/needs.ts'
import type { Claim, JobStore, LanePlace, TouchedJob, WaitingLane } from '../job-store.ts'
import { toJobError } from '../run/run-moves.ts'
import { readStoredGraph } from '../run/run-steps.ts'
import { type AnnounceDeps, announceTouched } from '../sweeps/announce-touched.ts'
import { statesBeforeEnd } from '../transitions.ts'

interface LaneDeps extends AnnounceDeps {
  readonly store: Pick<JobStore, 'findLanes' | 'joinLane' | 'claim' | 'commit'>
  readonly directory: Pick<
    EngineDirectory,
    'hasLanes' | 'knownLanes' | 'maxLanes' | 'learnLane' | 'strandedLanes' | 'explainStranded'
  >
  readonly clock: Clock
  readonly newId: NewId
  /** Left out: its own. */
  readonly turns?: Turns
  readonly log: Log
}

export interface LaneKeeper {
  /** Once, before the first claim. */
  start(): Promise<void>
  /** True: more lanes wait than it has looked at. The next call goes on behind them. */
  learn(): Promise<boolean>
  /** Ends jobs whose lane was stranded at the last call too: a catalog that lacks a class for a moment must not cost a job. */
  endStranded(): Promise<number>
}

const LEASE_MS = 30_000
/** Beyond this many, jobs of a stranded lane may have to wait for two further looks. */
const MAX_STRANDED = 10_000
/** The id of no engine and no worker: jobs are claimed here only to be ended. */
const NOBODY = 'none'

export function createLaneKeeper(deps: LaneDeps): LaneKeeper {
  const { store, directory, turns = createTurns() } = deps
  let strandedBefore = new Set<string>()
  let learntLast: LanePlace | undefined
  const endOne = createEndOne(deps)

  /**
   * Where more lanes wait than can be kept, a call learns half as many as can, behind those of the call before: so each lane has its
   * turn, and is kept for the time of two calls at least.
   */
  async function learn(): Promise<boolean> {
    if (!directory.hasLanes) return false
    const most = Math.max(1, Math.floor(directory.maxLanes / 2))
    let isLastRound = learntLast === undefined
    for (let left = most; left > 0; ) {
      const found = (await store.findLanes(directory.knownLanes(), learntLast)).slice(0, left)
      for (const lane of found) await learnOne(lane)
      left -= found.length
      learntLast = found.at(-1)
      if (found.length > 0) continue
      if (isLastRound) return false
      isLastRound = true
    }
    return true
  }

  async function learnOne({ lane, workflow, pool }: WaitingLane): Promise<void> {
    try {
      directory.learnLane(lane, await readStoredGraph(workflow, turns), pool)
    } catch (error) {
      // An empty graph has no needs, so every engine may claim the job, and its run fails with the reason.
      deps.log.error({ err: error, lane }, 'a waiting workflow could not be read')
      directory.learnLane(lane, new Map(), pool)
    }
  }

  /** The pools in which jobs of these lanes wait. */
  async function findPools(lanes: readonly string[]): Promise<ReadonlySet<string>> {
    const others = directory.knownLanes().filter((lane) => !lanes.includes(lane))
    const pools = new Set<string>()
    for (let last: LanePlace | undefined; ; ) {
      const found = await store.findLanes(others, last)
      for (const { pool, lane } of found) if (lanes.includes(lane)) pools.add(pool)
      last = found.at(-1)
      if (last === undefined) return pools
    }
  }

  return {
    async start() {
      if (!directory.hasLanes) return
      const joined = await store.joinLane(ANY_LANE)
      if (joined > 0) deps.log.info({ joined }, 'jobs of an earlier start may run on any engine')
      await learn()
    },
    learn,
    async endStranded() {
      const stranded = directory.strandedLanes()
      const lanes = stranded.filter((lane) => strandedBefore.has(lane))
      // What was stranded and is not known at the moment is judged again when it is.
      const known = new Set(directory.knownLanes())
      const unjudged = [...strandedBefore].filter((lane) => !known.has(lane))
      strandedBefore = new Set([...stranded, ...unjudged].slice(0, MAX_STRANDED))
      if (lanes.length === 0) return 0
      // The engines of a copy may not have been started again yet, and what they can run be unknown until then.
      const pools = [...(await findPools(lanes))].filter((pool) => readCopyPool(pool) === null)
      let count = 0
      for (const pool of pools) while (await endOne(pool, lanes)) count++
      if (count > 0) deps.log.warn({ count }, 'jobs that no engine can run any more were ended')
      return count
    },
  }
}

/** Ends one job of these lanes; false: none waits in the pool. */
function createEndOne(deps: LaneDeps) {
  const { store, directory, clock } = deps

  async function endOne(pool: string, lanes: readonly string[]): Promise<boolean> {
    const now = clock.now()
    const claim = await store.claim({
      pool,
      workerId: NOBODY,
      leaseId: deps.newId(),
      leaseUntil: new Date(now.getTime() + LEASE_MS),
      now,
      engines: [{ engineId: NOBODY, lanes: lanes.map((lane) => ({ lane, rank: 0 })) }],
      maxOvertakes: 0,
    })
    if (claim === null) return false
    const touched = await fail(claim, now)
    if (touched !== null) announceTouched(deps, [touched], 'no_engine')
    return true
  }

  async function fail({ job, leaseId, needs }: Claim, at: Date): Promise<TouchedJob | null> {
    const error = toJobError('no_engine', directory.explainStranded(needs))
    const finish = { status: 'failed', from: statesBeforeEnd('failed'), at, error } as const
    const outcome = await store.commit({ jobId: job.id, leaseId }, { finish })
    if (outcome.outcome === 'lost') return null
    return { jobId: job.id, accountId: job.accountId, version: outcome.version, status: 'failed' }
  }

  return endOne
}
