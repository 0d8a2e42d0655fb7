/** What is known of an account's queue, from one bounded reading of it. */
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import type { Clock } from '../../../../lib/clock.ts'
import type { SummaryStore } from '../summaries/summary-store.ts'
import type { PastRun, QueueReading } from './queue-reading.ts'

export interface WaitEstimatesDeps {
  readonly store: Pick<SummaryStore, 'readQueue'>
  readonly clock: Clock
}

interface KnownQueue {
  readonly reading: QueueReading
  readonly readAtMs: number
  readonly pace: Pace | null
  readonly proof: Proof
}

const MAX_QUEUES = 200
const FRESH_MS = 2000

export async function readKnownQueue(
  { store, clock }: WaitEstimatesDeps,
  accountId: string,
  pool: string,
): Promise<KnownQueue> {
  const reading = await store.readQueue(accountId, pool)
  const { ended } = reading
  return { reading, readAtMs: clock.now().getTime(), pace: readPace(ended), proof: proveEstimates(ended) }
}

/** One reading serves everybody who asks within a short time, so a poll costs no look at the queue. */
export function createKnownQueues(deps: WaitEstimatesDeps) {
  const { clock } = deps
  const known = new BoundedMap<string, { readonly askedAtMs: number; readonly queue: Promise<KnownQueue> }>(MAX_QUEUES)

  return (accountId: string, pool: string): Promise<KnownQueue> => {
    const name = `${accountId} ${pool}`
    const nowMs = clock.now().getTime()
    const last = known.get(name)
    if (last !== undefined && Math.abs(nowMs - last.askedAtMs) < FRESH_MS) return last.queue
    const queue = readKnownQueue(deps, accountId, pool)
    known.set(name, { askedAtMs: nowMs, queue })
    queue.catch(() => known.delete(name))
    return queue
  }
}

// How good estimates of this queue would have been: for jobs that have run, what would have been said while they waited, by what was
// known then, against when they started. An estimate is shown only where this was right often enough.

/** Something that would have been said, and what came. */
interface Trial {
  readonly ahead: number
  readonly saidMs: number
  readonly cameMs: number
}

interface Proof {
  /** Whether what is said of a job with so many before it was right often enough. */
  holdsFor(ahead: number): boolean
}

// Beyond this share of a factor of two, nine of ten are likely also among those to come.
const SHARE = 0.94
const MIN_TRIALS = 16
// Shorter waits are over before somebody has read of them.
const LEAST_MS = 1000
// When within its wait a job is asked about: as somebody would who looks at any time.
const MOMENTS = [1 / 6, 1 / 2, 5 / 6]
// What was known at a time is worked out for so many times; a trial goes by the last one before it.
const LOOKS = 8

/** `runs`: the latest first. */
function proveEstimates(runs: readonly PastRun[]): Proof {
  const looks = toLooks(runs)
  const trials = runs.flatMap((run) => MOMENTS.flatMap((moment) => tryOut(run, moment, { runs, looks }) ?? []))
  return {
    holdsFor(ahead) {
      // The next ones are told apart from those far behind: there chance weighs more.
      const alike = trials.filter((trial) => trial.ahead >= ahead / 2 && trial.ahead <= 2 * ahead + 1)
      const right = alike.filter(({ saidMs, cameMs }) => isWithinTwo(saidMs, cameMs))
      return alike.length >= MIN_TRIALS && right.length >= SHARE * alike.length
    },
  }
}

export function isWithinTwo(saidMs: number, cameMs: number): boolean {
  return saidMs <= 2 * cameMs && cameMs <= 2 * saidMs
}

interface Look {
  readonly atMs: number
  readonly pace: Pace
}

/** The latest first. */
function toLooks(runs: readonly PastRun[]): Look[] {
  const step = Math.max(1, Math.ceil(runs.length / LOOKS))
  const starts = Array.from({ length: LOOKS }, (_, index) => (index + 1) * step).filter((start) => start < runs.length)
  return starts.flatMap((start) => {
    const known = runs.slice(start)
    const pace = readPace(known)
    return pace === null ? [] : { atMs: known[0]?.completedAtMs ?? 0, pace }
  })
}

interface Past {
  readonly runs: readonly PastRun[]
  readonly looks: readonly Look[]
}

function tryOut(run: PastRun, moment: number, { runs, looks }: Past): Trial | null {
  const atMs = run.createdAtMs + moment * (run.startedAtMs - run.createdAtMs)
  const cameMs = run.startedAtMs - atMs
  const look = looks.find((each) => each.atMs <= atMs)
  if (cameMs < LEAST_MS || look === undefined) return null
  const held: PastRun[] = []
  const ahead: PastRun[] = []
  for (const other of runs) {
    if (other.startedAtMs <= atMs && other.completedAtMs > atMs) held.push(other)
    else if (other.createdAtMs <= atMs && other.startedAtMs > atMs && isBefore(other, run)) ahead.push(other)
  }
  return { ahead: ahead.length, saidMs: predictStart({ held, ahead, atMs }, look.pace), cameMs }
}

/** The order of claims within an account. */
function isBefore(one: PastRun, other: PastRun): boolean {
  return one.priority === other.priority ? one.seq < other.seq : one.priority > other.priority
}

/**
 * When a job that waits will start, worked out from what runs, what stands before it and how long such jobs took lately. Pure: the same
 * function tells of jobs that wait now and of jobs of the past, whose start is known.
 */
type Recipe = string | null

/** How the queue of an account moves. */
interface Pace {
  /** About how long a run of this recipe takes. */
  durationOf(recipe: Recipe): number
  /** How many runs the account had on average while others of its jobs waited. */
  readonly slots: number
}

interface Standing {
  readonly held: readonly { readonly recipe: Recipe; readonly startedAtMs: number }[]
  /** Those that are claimed before it. */
  readonly ahead: readonly { readonly recipe: Recipe }[]
  readonly atMs: number
}

const MIN_RUNS = 8
const MIN_OF_RECIPE = 3
// A run that has taken longer than expected is not over at once.
const LEAST_LEFT = 0.2

/** null: too little is known. `runs`: those that had ended by then, the latest first. */
function readPace(runs: readonly PastRun[]): Pace | null {
  if (runs.length < MIN_RUNS) return null
  const slots = slotsWhileWaiting(runs)
  if (slots === null) return null
  const byRecipe = Map.groupBy(runs, ({ recipe }) => recipe)
  const means = new Map(
    [...byRecipe].flatMap(([recipe, own]) => (own.length < MIN_OF_RECIPE ? [] : [[recipe, meanOf(own)]])),
  )
  const mean = meanOf(runs)
  return { slots, durationOf: (recipe) => means.get(recipe) ?? mean }
}

function meanOf(runs: readonly PastRun[]): number {
  return runs.reduce((sum, { startedAtMs, completedAtMs }) => sum + completedAtMs - startedAtMs, 0) / runs.length
}

/**
 * Limits, other accounts' shares, engines that are away and the pauses between two runs are all in this one figure, and nobody has to
 * know them. null: hardly anything ever waited.
 */
function slotsWhileWaiting(runs: readonly PastRun[]): number | null {
  const moves = runs
    .flatMap(({ createdAtMs, startedAtMs, completedAtMs }) => [
      { atMs: createdAtMs, waiting: 1, running: 0 },
      { atMs: startedAtMs, waiting: -1, running: 1 },
      { atMs: completedAtMs, waiting: 0, running: -1 },
    ])
    .sort((one, other) => one.atMs - other.atMs)
  // Of what ran before the first of these runs nothing is known.
  const fromMs = Math.min(...runs.map(({ startedAtMs }) => startedAtMs))
  let [waiting, running, busyMs, ranMs, lastMs] = [0, 0, 0, 0, fromMs]
  for (const move of moves) {
    const passedMs = move.atMs - lastMs
    if (passedMs > 0 && waiting > 0) {
      busyMs += passedMs
      ranMs += passedMs * running
    }
    lastMs = Math.max(lastMs, move.atMs)
    waiting += move.waiting
    running += move.running
  }
  return busyMs === 0 || ranMs === 0 ? null : ranMs / busyMs
}

/**
 * In milliseconds from then. The places are whole ones: each takes the next job when its run ends. Where the figure of slots is no
 * whole number, everything takes as much longer as the rounding up makes it faster.
 */
export function predictStart({ held, ahead, atMs }: Standing, { durationOf, slots }: Pace): number {
  const places = Math.max(1, Math.ceil(slots - 0.05))
  const slower = places / Math.max(slots, 0.05)
  const freeAt = held
    .map(({ recipe, startedAtMs }) => {
      const expected = durationOf(recipe) * slower
      return Math.max(expected - (atMs - startedAtMs), expected * LEAST_LEFT)
    })
    .sort((one, other) => one - other)
    .slice(-places)
  while (freeAt.length < places) freeAt.unshift(0)
  for (const { recipe } of ahead) {
    const soonest = freeAt.indexOf(Math.min(...freeAt))
    freeAt[soonest] = (freeAt[soonest] ?? 0) + durationOf(recipe) * slower
  }
  return Math.min(...freeAt)
}
