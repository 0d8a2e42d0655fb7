/**
 * The partitions of everything that is kept until a job's retention ends: all parents have the same ranges of expiry. A range is
 * made by a chore some days before it is needed, and known to all nodes by the table `job_partition`. Whoever finds a range missing
 * (it was dropped, or the chore did not run) makes it and tries again.
 */
import { command, insertInto, postgresOnly, query, selectFrom } from '../../statements/statement.ts'
import { jobPartition } from '../../tables/job-tables.ts'
import type { Connected } from './connections.ts'
import { toFault } from './postgres-error.ts'
import type { Queryable } from './statement.ts'

export const PARTITIONED_TABLES = ['job_done', 'job_text', 'job_log', 'job_label', 'output'] as const

export interface PartitionRange {
  readonly from: number
  /** Not part of it. */
  readonly to: number
}

export interface Partitions {
  /** To be called before rows with this expiry are written; costs nothing once the range is known. */
  ensure(expiresAt: number): Promise<void> | undefined
  /** Makes the ranges of this time, its end included. */
  prepare(from: number, to: number): Promise<void>
  /** Forgets what is known of the range that holds this expiry, which another node has dropped. */
  forget(expiresAt: number): void
}

const LIST = query('partitions.list', jobPartition, postgresOnly(selectFrom(jobPartition, 'ORDER BY lower')))
const ADD = command('partitions.add', postgresOnly(insertInto(jobPartition)))
// One number for all nodes; only held for the moment in which partitions are made or dropped.
const LOCK = command('partitions.lock', postgresOnly('SELECT pg_advisory_xact_lock(7267301)'))

const DAY_MS = 86_400_000

/** Runs what writes rows with these expiries. A range that this process knows may have been dropped by another one since. */
export async function withPartitions<Result>(
  partitions: Partitions,
  expiries: readonly number[],
  run: () => Promise<Result>,
): Promise<Result> {
  try {
    return await run()
  } catch (error) {
    if (toFault(error) !== 'no_partition') throw error
    for (const expiresAt of expiries) {
      partitions.forget(expiresAt)
      await partitions.ensure(expiresAt)
    }
    return run()
  }
}

export function openPartitions(connected: Connected, widthMs = DAY_MS): Partitions {
  let known: readonly PartitionRange[] = []
  let making = Promise.resolve()

  const isKnown = (expiresAt: number) => known.some(({ from, to }) => expiresAt >= from && expiresAt < to)

  async function make(expiresAt: number): Promise<void> {
    if (isKnown(expiresAt)) return
    known = await listPartitions(connected)
    if (isKnown(expiresAt)) return
    known = await connected.transaction(
      async (tx) => {
        await lockPartitions(tx)
        const ranges = await listPartitions(tx)
        if (ranges.some(({ from, to }) => expiresAt >= from && expiresAt < to)) return ranges
        const range = toRange(expiresAt, widthMs, ranges)
        for (const table of PARTITIONED_TABLES) await addPartition(tx, table, range)
        await tx.run(ADD, { lower: range.from, upper: range.to })
        return [...ranges, range]
      },
      { isRepeatable: true },
    )
  }

  function ensure(expiresAt: number): Promise<void> | undefined {
    if (isKnown(expiresAt)) return undefined
    const made = making.then(() => make(expiresAt))
    making = made.catch(() => {})
    return made
  }

  return {
    ensure,
    async prepare(from, to) {
      for (let at = from; at <= to; ) {
        await ensure(at)
        at = known.find((range) => at >= range.from && at < range.to)?.to ?? at + widthMs
      }
    },
    forget(expiresAt) {
      known = known.filter(({ from, to }) => expiresAt < from || expiresAt >= to)
    },
  }
}

/**
 * Made beside its parent and then attached: a table that is created as a partition shuts everybody out of the parent, and waits for
 * whoever reads it, while everybody else waits behind that.
 */
async function addPartition(
  tx: Queryable,
  parent: (typeof PARTITIONED_TABLES)[number],
  range: PartitionRange,
): Promise<void> {
  const name = partitionName(parent, range)
  await tx.run(command('', postgresOnly(`CREATE TABLE ${name} (LIKE ${parent} INCLUDING ALL)`)))
  const bounds = `FROM (${range.from}) TO (${range.to})`
  await tx.run(command('', postgresOnly(`ALTER TABLE ${parent} ATTACH PARTITION ${name} FOR VALUES ${bounds}`)))
}

/** Until the end of the transaction nobody else makes or drops partitions. */
export async function lockPartitions(tx: Queryable): Promise<void> {
  await tx.run(LOCK)
}

export async function listPartitions(db: Queryable): Promise<PartitionRange[]> {
  return (await db.all(LIST)).map(({ lower, upper }) => ({ from: lower, to: upper }))
}

/** Widths may have been other ones before: the new range ends where a neighbour begins. */
function toRange(expiresAt: number, widthMs: number, others: readonly PartitionRange[]): PartitionRange {
  const from = Math.floor(expiresAt / widthMs) * widthMs
  const lower = others.filter(({ to }) => to <= expiresAt).map(({ to }) => to)
  const upper = others.filter((other) => other.from > expiresAt).map((other) => other.from)
  return { from: Math.max(from, ...lower), to: Math.min(from + widthMs, ...upper) }
}

export function partitionName(table: (typeof PARTITIONED_TABLES)[number], { from }: PartitionRange): string {
  return `${table}_${from < 0 ? `m${-from}` : from}`
}
