/** What things cost, measured: the words that the measurement and the model share. */

/** What one of something (a job, a submit, a poll) costs the parts of a service. */
export interface Cost {
  /** Processor time of Atelier's own processes. */
  readonly nodeMicros: number
  /** Processor time of Postgres, all its processes together. */
  readonly postgresMicros: number
  readonly statements: number
  readonly notifies: number
  /** What Postgres writes to its log. */
  readonly logBytes: number
  /** How long all processes together were there for it: what they cost by the second is charged by this. */
  readonly processSeconds: number
}

/** A job with its stream, one poll of its end, and its output fetched once. */
export interface JobCost extends Cost {
  /** Writes and reads of the place where bytes lie: on S3, a PUT and a GET each. */
  readonly objectWrites: number
  readonly objectReads: number
  readonly outputBytes: number
}

/** What a process costs that does nothing, in each second. */
export type IdleCost = Pick<Cost, 'nodeMicros' | 'postgresMicros' | 'statements' | 'logBytes'>

/** How much a process has to do at a time. The more, the more of it shares a statement. */
export const LOADS = ['light', 'heavy'] as const
export type LoadName = (typeof LOADS)[number]

export interface MeasuredRun {
  readonly processes: number
  readonly perJob: Readonly<Record<LoadName, JobCost>>
  readonly perSubmit: Cost
  readonly perPoll: Cost
  readonly idlePerSecond: IdleCost
}

export interface Measured {
  readonly measuredAt: string
  readonly machine: string
  readonly runs: readonly MeasuredRun[]
}
