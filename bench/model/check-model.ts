/**
 * What the model says of several processes against what they were measured to cost. The model knows the run of one process: a job costs
 * the same wherever it is taken and run, because nothing is shared but Postgres and there every row belongs to one account.
 */
import { type JobCost, LOADS, type MeasuredRun } from './costs.ts'

export interface Deviation {
  readonly what: string
  readonly processes: number
  readonly predicted: number
  readonly measured: number
  /** (measured - predicted) / predicted. */
  readonly error: number
}

const JOB_WORDS = ['nodeMicros', 'postgresMicros', 'statements', 'logBytes'] as const satisfies (keyof JobCost)[]
const REQUEST_WORDS = ['nodeMicros', 'postgresMicros'] as const

export function findDeviations(runs: readonly MeasuredRun[]): Deviation[] {
  const one = runs.find(({ processes }) => processes === 1)
  if (one === undefined) throw new Error('there is no run of one process')
  const others = runs.filter((run) => run !== one)
  return others.flatMap((run) => [
    ...LOADS.flatMap((load) =>
      JOB_WORDS.map((word) =>
        toDeviation(`job, ${load}: ${word}`, run, one.perJob[load][word], run.perJob[load][word]),
      ),
    ),
    ...REQUEST_WORDS.map((word) => toDeviation(`submit: ${word}`, run, one.perSubmit[word], run.perSubmit[word])),
    toDeviation('poll: nodeMicros', run, one.perPoll.nodeMicros, run.perPoll.nodeMicros),
  ])
}

function toDeviation(what: string, { processes }: MeasuredRun, predicted: number, measured: number): Deviation {
  return { what, processes, predicted, measured, error: (measured - predicted) / predicted }
}
