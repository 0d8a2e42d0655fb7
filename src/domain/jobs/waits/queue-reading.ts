/** What an estimate of a wait goes by: the beginning of an account's queue in a pool, what it has running, and its latest runs. */

/** What jobs of a kind share; null: not known. */
type Recipe = string | null

interface WaitingJob {
  readonly id: string
  readonly recipe: Recipe
  readonly priority: number
}

interface HeldJob {
  readonly recipe: Recipe
  readonly startedAtMs: number
}

/** A run that has ended, of a job that needed only this one. */
export interface PastRun {
  readonly recipe: Recipe
  readonly priority: number
  /** The order of submits. */
  readonly seq: number
  readonly createdAtMs: number
  readonly startedAtMs: number
  readonly completedAtMs: number
}

export interface QueueReading {
  /** In the order in which claims take them; the first ones. */
  readonly waiting: readonly WaitingJob[]
  readonly held: readonly HeldJob[]
  /** The latest ones. */
  readonly ended: readonly PastRun[]
}

/** How much of each is read, whatever there is. */
export const READ_WAITING = 200
export const READ_HELD = 200
export const READ_ENDED = 128
/** Runs of other pools lie between those of this one: so many are looked at. */
export const LOOKED_AT_ENDED = 512
