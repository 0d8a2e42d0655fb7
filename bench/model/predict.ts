/**
 * What a service of a given size needs, out of what one job costs: how many cores of Postgres, how much log, how many connections, what
 * comes to its end first, into how many clusters accounts have to be divided, and what a million jobs cost.
 */
import type { JobModel } from './check-model.ts'
import type { IdleCost } from './costs.ts'

/** A service as somebody plans it. */
export interface Plan {
  readonly jobsPerSecond: number
  readonly apiNodes: number
  /** Workers that reach the database themselves; those that joined over HTTPS are none. */
  readonly directWorkers: number
  /** Processes that claim and have room for a job at a moment: each looks when another one announces work. */
  readonly withRoom: number
  /** How long a job runs, and how often its progress is written meanwhile. */
  readonly runSeconds: number
  readonly progressSeconds: number
  /** The share of all jobs that the busiest account has. */
  readonly busiestShare: number
  readonly outputBytes: number
  readonly retentionDays: number
}

/** Where one Postgres ends. Yours ends elsewhere: these are what docs/scale.md says of them. */
export interface Limits {
  /** Processor cores that Postgres may use on average, so that peaks find some. */
  readonly postgresCores: number
  readonly logBytesPerSecond: number
  readonly connections: number
  /** Lines of notices, each to every listening process. */
  readonly deliveriesPerSecond: number
  /** Jobs that one account may start and end: their counters are one row. */
  readonly jobsPerAccount: number
}

export interface Prices {
  /** US dollars of one core for an hour, memory and machine included. */
  readonly coreHour: number
  readonly databaseCoreHour: number
  readonly databaseGigabyteMonth: number
  readonly objectGigabyteMonth: number
  readonly thousandWrites: number
  readonly thousandReads: number
}

export const LIMITS: Limits = {
  postgresCores: 20,
  logBytesPerSecond: 50e6,
  connections: 500,
  deliveriesPerSecond: 100_000,
  jobsPerAccount: 400,
}

export const PRICES: Prices = {
  coreHour: 0.04,
  databaseCoreHour: 0.12,
  databaseGigabyteMonth: 0.12,
  objectGigabyteMonth: 0.023,
  thousandWrites: 0.005,
  thousandReads: 0.0004,
}

export interface Need {
  readonly atelierCores: number
  readonly postgresCores: number
  readonly statementsPerSecond: number
  readonly logBytesPerSecond: number
  readonly connections: number
  readonly deliveriesPerSecond: number
  readonly busiestJobsPerSecond: number
  readonly databaseBytes: number
  readonly objectBytes: number
  /** Clusters over which accounts are divided. */
  readonly shards: number
  /** What needs the most of its limit, and how much: 1 is the end. */
  readonly first: { readonly limit: keyof typeof WORDS; readonly used: number }
  readonly usdPerMillion: number
}

const WORDS = {
  postgresCores: 'cores of Postgres',
  logBytesPerSecond: 'its log',
  connections: 'connections',
  deliveriesPerSecond: 'deliveries of notices (then: NATS)',
  jobsPerAccount: 'the row of the busiest account',
}

export function toWords(limit: keyof typeof WORDS): string {
  return WORDS[limit]
}

// Not measured by bench/model: a write of progress, what of a job stays in the database, and its moves that are announced.
const PROGRESS_MICROS = 200
const ROW_BYTES = 4000
const MOVES_PER_JOB = 4
const CONNECTIONS_PER_API = 9
const CONNECTIONS_PER_WORKER = 5
// Half of REMOTE_WORK_MS in src/compose/jobs/job-actions.ts.
const MEAN_WAIT_SECONDS = 0.025
const MONTH_SECONDS = 30 * 86_400
const GIGABYTE = 1e9

interface Given {
  readonly job: JobModel
  readonly idle: IdleCost
  readonly limits?: Limits
  readonly prices?: Prices
}

export function predict(plan: Plan, { job, idle, limits = LIMITS, prices = PRICES }: Given): Need {
  const { jobsPerSecond: rate, apiNodes, directWorkers } = plan
  const processes = apiNodes + directWorkers
  const progressMicros = Math.floor(plan.runSeconds / plan.progressSeconds) * PROGRESS_MICROS
  const seconds = plan.retentionDays * 86_400
  const looks = plan.withRoom * looksPerSecond(rate)
  const spend = (word: keyof IdleCost) => rate * job.own[word] + looks * job.perPeer[word] + processes * idle[word]
  const need = {
    atelierCores: spend('nodeMicros') / 1e6,
    postgresCores: (spend('postgresMicros') + rate * progressMicros) / 1e6,
    statementsPerSecond: spend('statements'),
    logBytesPerSecond: spend('logBytes'),
    connections: apiNodes * CONNECTIONS_PER_API + directWorkers * CONNECTIONS_PER_WORKER,
    deliveriesPerSecond: rate * MOVES_PER_JOB * processes,
    busiestJobsPerSecond: rate * plan.busiestShare,
    databaseBytes: rate * seconds * ROW_BYTES,
    objectBytes: rate * seconds * plan.outputBytes,
  }
  // An account lives in one cluster, so its own row does not get better by dividing.
  const divisible = { postgresCores: need.postgresCores, logBytesPerSecond: need.logBytesPerSecond }
  const used = Object.entries({
    ...divisible,
    connections: need.connections,
    deliveriesPerSecond: need.deliveriesPerSecond,
    jobsPerAccount: need.busiestJobsPerSecond,
  }).map(([limit, amount]) => ({ limit: limit as keyof Limits, used: amount / limits[limit as keyof Limits] }))
  const [first] = used.toSorted((a, b) => b.used - a.used)
  const parts = Object.entries(divisible).map(([limit, amount]) => amount / limits[limit as keyof Limits])
  return {
    ...need,
    shards: Math.max(1, Math.ceil(Math.max(...parts))),
    first,
    usdPerMillion: toUsd(need, plan, prices),
  }
}

type Amounts = Pick<Need, 'atelierCores' | 'postgresCores' | 'databaseBytes' | 'objectBytes'>

/** Without GPUs, which cost a hundred times as much, and without traffic out, which differs by a factor of ten. */
function toUsd(need: Amounts, plan: Plan, prices: Prices): number {
  const perMonth =
    (MONTH_SECONDS / 3600) * (need.atelierCores * prices.coreHour + need.postgresCores * prices.databaseCoreHour) +
    (need.databaseBytes / GIGABYTE) * prices.databaseGigabyteMonth +
    (need.objectBytes / GIGABYTE) * prices.objectGigabyteMonth
  // One output, written once and fetched once.
  const requests = 1000 * (prices.thousandWrites + prices.thousandReads)
  return perMonth / ((plan.jobsPerSecond * MONTH_SECONDS) / 1e6) + requests
}

/** How often a process with room looks, when so many jobs a second are announced elsewhere: announcements wait for each other. */
function looksPerSecond(rate: number): number {
  return rate / (1 + rate * MEAN_WAIT_SECONDS)
}

/** The rate at which one Postgres is at its end, and by what. */
export function findEnd({ job, limits = LIMITS }: { readonly job: JobModel; readonly limits?: Limits }): {
  readonly jobsPerSecond: number
  readonly by: string
} {
  const ends = [
    { jobsPerSecond: (limits.postgresCores * 1e6) / job.own.postgresMicros, by: toWords('postgresCores') },
    { jobsPerSecond: limits.logBytesPerSecond / job.own.logBytes, by: toWords('logBytesPerSecond') },
  ]
  return ends.toSorted((a, b) => a.jobsPerSecond - b.jobsPerSecond)[0]
}
