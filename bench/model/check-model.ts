/**
 * What the model says of several processes against what they were measured to cost. A thing costs
 *
 *   itself + what a process costs by the second, for as long as its processes were there for it + what it costs each other process
 *
 * The first two are taken from one process, the last, which only jobs have (a process with room looks for a job that another one announces),
 * from two. So two processes check the model for submits and polls, and four check it for everything.
 */
import { type Cost, type IdleCost, type JobCost, LOADS, type MeasuredRun } from './costs.ts'

export interface Deviation {
  readonly what: string
  readonly processes: number
  readonly predicted: number
  readonly measured: number
  /** (measured - predicted) / predicted. */
  readonly error: number
}

export type Word = keyof IdleCost
const WORDS: readonly Word[] = ['nodeMicros', 'postgresMicros', 'statements', 'logBytes']

/** What a job costs by itself, and what it costs each other process that has room. */
export interface JobModel {
  readonly own: Pick<JobCost, Word>
  readonly perPeer: Pick<JobCost, Word>
}

export function fitJobs(runs: readonly MeasuredRun[], load: (typeof LOADS)[number]): JobModel {
  const [one, two] = [runOf(runs, 1), runOf(runs, 2)]
  const idle = one.idlePerSecond
  const own = toOwn(one.perJob[load], idle)
  const beside = toOwn(two.perJob[load], idle)
  return { own, perPeer: mapWords((word) => Math.max(0, beside[word] - own[word])) }
}

export function findDeviations(runs: readonly MeasuredRun[]): Deviation[] {
  const one = runOf(runs, 1)
  return [2, 4].flatMap((processes) => {
    const run = runOf(runs, processes)
    const compare = (what: string, found: Cost, own: Pick<Cost, Word>, words = WORDS) =>
      words.map((word) => {
        const predicted = own[word] + one.idlePerSecond[word] * found.processSeconds
        return {
          what: `${what}: ${word}`,
          processes,
          predicted,
          measured: found[word],
          error: found[word] / predicted - 1,
        }
      })
    const jobs = LOADS.flatMap((load) => {
      const { own, perPeer } = fitJobs(runs, load)
      const whole = mapWords((word) => own[word] + (processes - 1) * perPeer[word])
      return compare(`job, ${load}`, run.perJob[load], whole)
    })
    const requests = [
      ...compare('submit', run.perSubmit, toOwn(one.perSubmit, one.idlePerSecond)),
      ...compare('poll', run.perPoll, toOwn(one.perPoll, one.idlePerSecond), ['nodeMicros']),
    ]
    return processes === 2 ? requests : [...jobs, ...requests]
  })
}

/** Without what the processes would have cost anyway in that time. */
function toOwn(cost: Cost, idle: IdleCost): Pick<Cost, Word> {
  return mapWords((word) => Math.max(0, cost[word] - idle[word] * cost.processSeconds))
}

function mapWords(toValue: (word: Word) => number): Record<Word, number> {
  return Object.fromEntries(WORDS.map((word) => [word, toValue(word)])) as Record<Word, number>
}

function runOf(runs: readonly MeasuredRun[], processes: number): MeasuredRun {
  const found = runs.find((run) => run.processes === processes)
  if (found === undefined) throw new Error(`there is no run of ${processes} processes`)
  return found
}
