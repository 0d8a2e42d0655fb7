/**
 * When a job that waits will start, worked out from what runs, what stands before it and how long such jobs took lately. Pure: the same
 * function tells of jobs that wait now and of jobs of the past, whose start is known (prove-estimates.ts).
 */
import type { PastRun } from './queue-reading.ts'

type Recipe = string | null

/** How the queue of an account moves. */
export interface Pace {
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
export function readPace(runs: readonly PastRun[]): Pace | null {
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
