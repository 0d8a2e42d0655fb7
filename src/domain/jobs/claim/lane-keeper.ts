/**
 * Keeps the knowledge of lanes in step with the queue: lanes that another process made, or that waited across a restart,
 * are learnt from one of their jobs; jobs of a lane that no engine can serve any more end instead of waiting for ever.
 */
import type { Clock } from '../../../../lib/clock.ts'
import type { NewId } from '../../../../lib/ids.ts'
import type { Log } from '../../../../lib/log.ts'
import { createTurns, type Turns } from '../../../../lib/waiting/turns.ts'
import type { EngineDirectory } from '../../engine/directory/engine-directory.ts'
import { ANY_LANE } from '../../engine/fleet/lane-table.ts'
import { toJobError } from '../end/end-of-run.ts'
import type { Claim, JobStore, TouchedJob, WaitingLane } from '../job-store.ts'
import { readStoredGraph } from '../run/prepare-run.ts'
import { type AnnounceDeps, announceTouched } from '../sweeps/announce-touched.ts'

interface LaneDeps extends AnnounceDeps {
  readonly store: Pick<JobStore, 'findLanes' | 'joinLane' | 'claim' | 'commit'>
  readonly directory: Pick<
    EngineDirectory,
    'hasLanes' | 'knownLanes' | 'learnLane' | 'strandedLanes' | 'explainStranded'
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
  learn(): Promise<void>
  /** Ends jobs whose lane was stranded at the last call too: a catalog that lacks a class for a moment must not cost a job. */
  endStranded(): Promise<number>
}

const MAX_ROUNDS = 100
const LEASE_MS = 30_000
/** The id of no engine and no worker: jobs are claimed here only to be ended. */
const NOBODY = 'none'

export function createLaneKeeper(deps: LaneDeps): LaneKeeper {
  const { store, directory, clock, turns = createTurns() } = deps
  let strandedBefore = new Set<string>()

  async function learn(): Promise<void> {
    if (!directory.hasLanes) return
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const found = await store.findLanes(directory.knownLanes())
      if (found.length === 0) return
      for (const lane of found) await learnOne(lane)
    }
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
    const finish = { status: 'failed', from: ['running', 'canceling'], at, error } as const
    const outcome = await store.commit({ jobId: job.id, leaseId }, { finish })
    if (outcome.outcome === 'lost') return null
    return { jobId: job.id, accountId: job.accountId, version: outcome.version, status: 'failed' }
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
      strandedBefore = new Set(stranded)
      if (lanes.length === 0) return 0
      const others = directory.knownLanes().filter((lane) => !lanes.includes(lane))
      const pools = new Set((await store.findLanes(others)).map(({ pool }) => pool))
      let count = 0
      for (const pool of pools) while (await endOne(pool, lanes)) count++
      if (count > 0) deps.log.warn({ count }, 'jobs that no engine can run any more were ended')
      return count
    },
  }
}
