/**
 * How good estimates of this queue would have been: for jobs that have run, what would have been said while they waited, by what was
 * known then, against when they started. An estimate is shown only where this was right often enough.
 */
import { type Pace, predictStart, readPace } from './predict-start.ts'
import type { PastRun } from './queue-reading.ts'

/** Something that would have been said, and what came. */
interface Trial {
  readonly ahead: number
  readonly saidMs: number
  readonly cameMs: number
}

export interface Proof {
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
export function proveEstimates(runs: readonly PastRun[]): Proof {
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
