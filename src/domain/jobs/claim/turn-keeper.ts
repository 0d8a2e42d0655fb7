/**
 * Keeps one account from holding the built-in engine while others wait. When no slot is free and a job of another account waits that
 * is due more than another run of the holder, a run that has had its turn is ended: its job goes behind all that wait of its account, which
 * has spent its share, and keeps its attempt. What its nodes have computed stays in the engine's cache for the next time.
 *
 * A job that gave way gets a turn twice as long the next time, and after a few of the longest it runs to its end, however many wait. One slot
 * of several always changes hands after the short turn, so that nobody waits for a long one. Servers of their own are left alone: their
 * work is not ours to repeat.
 */
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import type { Clock } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import { readCopyPool } from '../../engine/copy-pool.ts'
import type { Fleet } from '../../engine/fleet/fleet.ts'
import type { RunStore } from '../job-store.ts'
import type { JobRun } from '../run/job-run.ts'
import type { Worker } from './worker.ts'

interface TurnKeeperDeps {
  readonly store: Pick<RunStore, 'findOutwaited'>
  readonly fleet: Pick<Fleet, 'resident'>
  /** Those of all pools in this process. */
  readonly workers: () => Iterable<TurnWorker>
  readonly clock: Clock
  readonly log: Log
}

type TurnWorker = Pick<Worker, 'pool' | 'stats' | 'hasRoom' | 'computing' | 'giveWay'>

interface TurnKeeper {
  /** To be called about once a second. */
  look(): Promise<void>
}

/** Long enough for nearly every job of the built-in engine, short enough for a person who waits. */
const TURN_MS = 3000
// Six and a half minutes.
const MAX_DOUBLINGS = 7
// Where there is but one slot, everybody else waits for a long turn: 48 seconds.
const MAX_DOUBLINGS_ALONE = 4
/** So many turns of full length; then the job runs to its end, or a node that takes longer would begin for ever. */
const FULL_TURNS = 2
const MAX_REMEMBERED = 10_000

interface HeldTurn {
  readonly worker: TurnWorker
  readonly run: JobRun
  readonly accountId: string
  readonly ageMs: number
  /** Infinity: it runs to its end. */
  readonly turnMs: number
}

export function createTurnKeeper({ store, fleet, workers, clock, log }: TurnKeeperDeps): TurnKeeper {
  /** By job: how often it gave way here. */
  const gaveWay = new BoundedMap<string, number>(MAX_REMEMBERED)
  /** Pools for which a run is just leaving its slot. */
  const leaving = new Set<string>()

  function heldBy(holders: readonly TurnWorker[], engineId: string): HeldTurn[] {
    const nowMs = clock.now().getTime()
    const runs = holders.flatMap((worker) => worker.computing().map((run) => ({ worker, run })))
    const here = runs.filter(({ run }) => run.claim.engineId === engineId)
    const most = here.length > 1 ? MAX_DOUBLINGS : MAX_DOUBLINGS_ALONE
    const timesOf = ({ claim }: JobRun) => gaveWay.get(claim.job.id) ?? 0
    const ageOf = ({ claim }: JobRun) => nowMs - (claim.job.startedAt?.getTime() ?? nowMs)
    // The oldest, so that one which was let run stays so; never all of several, so that one slot changes hands.
    const toEnd = here
      .map(({ run }) => run)
      .filter((run) => timesOf(run) >= most + FULL_TURNS)
      .sort((one, other) => ageOf(other) - ageOf(one))
      .slice(0, Math.max(1, here.length - 1))
    return here.map(({ worker, run }) => {
      const turnMs = toEnd.includes(run) ? Number.POSITIVE_INFINITY : TURN_MS * 2 ** Math.min(timesOf(run), most)
      return { worker, run, accountId: run.claim.job.accountId, ageMs: ageOf(run), turnMs }
    })
  }

  async function lookAt(waiting: TurnWorker, all: readonly TurnWorker[]): Promise<void> {
    const resident = fleet.resident()
    if (resident === null || store.findOutwaited === undefined) return
    const { engineId, lanes } = resident
    if (waiting.hasRoom() && resident.hasRoom) return
    // A pool that is full itself cannot use a slot that another pool frees.
    const held = heldBy(waiting.hasRoom() ? all : [waiting], engineId)
    const over = held.filter(({ ageMs }) => ageMs >= TURN_MS)
    if (over.length === 0) return
    const accountIds = [...new Set(over.map(({ accountId }) => accountId))]
    const { pool } = waiting
    const outwaited = new Set(await store.findOutwaited({ pool, now: clock.now(), lanes, accountIds }))
    const chosen = choose(held, outwaited)
    if (chosen === null || !chosen.run.isComputing) return
    const { jobId } = chosen.run.lease
    gaveWay.set(jobId, (gaveWay.get(jobId) ?? 0) + 1)
    log.info({ jobId, accountId: chosen.accountId, pool }, 'a run gave way to another account that waits')
    leaving.add(pool)
    void chosen.worker.giveWay(chosen.run).finally(() => leaving.delete(pool))
  }

  return {
    async look() {
      // Jobs of a copy have engines of their own.
      const all = [...workers()].filter((worker) => !worker.stats().isDraining && readCopyPool(worker.pool) === null)
      for (const worker of all) if (!leaving.has(worker.pool)) await lookAt(worker, all)
    },
  }
}

/** Which run has to give way; null: none yet. */
function choose(held: readonly HeldTurn[], outwaited: ReadonlySet<string>): HeldTurn | null {
  const may = held.filter(
    ({ accountId, ageMs, turnMs }) => outwaited.has(accountId) && ageMs >= TURN_MS && Number.isFinite(turnMs),
  )
  const slotsOf = (id: string) => held.filter(({ accountId }) => accountId === id).length
  const over = may
    .filter(({ ageMs, turnMs }) => ageMs >= turnMs)
    .sort((one, other) => slotsOf(other.accountId) - slotsOf(one.accountId) || other.ageMs - one.ageMs)
  if (over[0] !== undefined) return over[0]
  const areAllHeld = held.length > 1 && held.every(({ ageMs }) => ageMs >= TURN_MS)
  return areAllHeld ? (may.toSorted((one, other) => one.ageMs - other.ageMs)[0] ?? null) : null
}
