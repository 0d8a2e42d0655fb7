/**
 * Removes whole ranges of expiry that are over. What their rows count for elsewhere (jobs for their accounts, outputs for storage and
 * blobs) is given back in batches; each batch deletes the rows that it counted, so that a process that dies in the middle leaves
 * nothing counted twice and nothing forgotten. Then the tables of the range are dropped, with all texts, logs and labels in them:
 * these are never deleted row by row, nothing has to be vacuumed, and no space stays behind.
 */

import type { Steps } from '../../../statements/operation.ts'
import { command, postgresOnly, query } from '../../../statements/statement.ts'
import { giveBackCounts, giveBackOutputs } from '../../../stores/jobs/retention.ts'
import { output } from '../../../tables/assets.ts'
import { jobDone } from '../../../tables/job-tables.ts'
import { type Columns, flag, integer, pick, type RowOf, type Shape, shape } from '../../../tables/table.ts'
import type { Connected } from '../../database/connections.ts'
import {
  listPartitions,
  lockPartitions,
  PARTITIONED_TABLES,
  type PartitionRange,
  partitionName,
} from '../../database/partitions.ts'
import { isTimeout } from '../../database/postgres-error.ts'
import type { Queryable } from '../../database/statement.ts'
import { runOn } from '../../shared-stores.ts'

interface DropInput {
  readonly now: number
  readonly expiredBefore: number
  /** About how many jobs one call may remove. */
  readonly limit: number
  readonly signal?: AbortSignal | undefined
}

/** How many jobs went. */
export async function dropExpired(chore: Connected, input: DropInput): Promise<number> {
  const { now, expiredBefore, limit, signal } = input
  const over = Math.min(now, expiredBefore)
  let removed = 0
  for (const range of await listPartitions(chore)) {
    if (range.to > over || removed >= limit || signal?.aborted) break
    if (await isNeeded(chore, range, expiredBefore)) continue
    removed += await emptyRange(chore, range, { now, limit: limit - removed, signal })
    if (removed < limit && !signal?.aborted) await dropRange(chore, range)
  }
  return removed
}

const answer = shape({ isSo: flag('boolean') })
const IS_NEEDED = query(
  'partitions.is_needed',
  answer,
  postgresOnly(`
    SELECT EXISTS (SELECT 1 FROM job WHERE expires_at >= :from AND expires_at < :to)
      OR EXISTS (SELECT 1 FROM job_done
        WHERE expires_at >= :from AND expires_at < :to AND status = 'expired' AND completed_at > :expiredBefore) AS is_so`),
)

/** A job of the range still lives, or became `expired` so late that its owner may still want to see it. */
async function isNeeded(db: Queryable, { from, to }: PartitionRange, expiredBefore: number): Promise<boolean> {
  return (await db.get(IS_NEEDED, { from, to, expiredBefore }))?.isSo !== false
}

// About two thousand rows: a transaction of some milliseconds.
const BLOCKS_AT_ONCE = 64
const CHOSEN_AT_ONCE = 5000

const DELETE_CHOSEN = command(
  'partitions.delete_chosen',
  postgresOnly(`DELETE FROM job_id_chosen WHERE id IN (
    SELECT id FROM job_id_chosen WHERE expires_at >= :from AND expires_at < :to LIMIT :limit)`),
)

async function emptyRange(
  chore: Connected,
  range: PartitionRange,
  { now, limit, signal }: Pick<DropInput, 'now' | 'limit' | 'signal'>,
): Promise<number> {
  const outputs = { table: partitionName('output', range), gone: pick(output, 'accountId', 'hash', 'sizeBytes') }
  await inBlocks(chore, { ...outputs, limit: Number.POSITIVE_INFINITY, signal }, (gone) =>
    giveBackOutputs(gone, new Date(now)),
  )
  const jobs = { table: partitionName('job_done', range), gone: pick(jobDone, 'accountId', 'status') }
  const removed = await inBlocks(chore, { ...jobs, limit, signal }, giveBackCounts)
  const { from, to } = range
  while ((await chore.run(DELETE_CHOSEN, { from, to, limit: CHOSEN_AT_ONCE })) === CHOSEN_AT_ONCE);
  return removed
}

interface Blocks<Fields extends Columns> {
  readonly table: string
  /** What is told of each row that goes. */
  readonly gone: Shape<Fields>
  readonly limit: number
  readonly signal: AbortSignal | undefined
}

/**
 * Deletes the rows of a table in the order in which they lie, some blocks at a time: each block is read once, however many are
 * already empty. Returns how many rows it deleted.
 */
async function inBlocks<Fields extends Columns>(
  chore: Connected,
  { table, gone: told, limit, signal }: Blocks<Fields>,
  giveBack: (gone: readonly RowOf<Shape<Fields>>[]) => Steps<void>,
): Promise<number> {
  const size = query(
    '',
    shape({ blocks: integer() }),
    postgresOnly(`SELECT pg_relation_size('${table}') / current_setting('block_size')::bigint AS blocks`),
  )
  const remove = query(
    '',
    told,
    postgresOnly(
      `DELETE FROM ${table} WHERE ctid >= :from::text::tid AND ctid < :to::text::tid RETURNING ${told.columns}`,
    ),
  )
  const blocks = (await chore.get(size))?.blocks ?? 0
  let deleted = 0
  for (let block = 0; block < blocks && deleted < limit && !signal?.aborted; block += BLOCKS_AT_ONCE) {
    const bounds = { from: `(${block},0)`, to: `(${block + BLOCKS_AT_ONCE},0)` }
    deleted += await chore.transaction(
      async (tx) => {
        const gone = await tx.all(remove, bounds)
        await runOn(tx, giveBack(gone))
        return gone.length
      },
      { isRepeatable: true },
    )
  }
  return deleted
}

// Everything that reads ended jobs waits for as long as this waits: so it gives up early, and tries again at the next sweep.
const SHORT_WAIT = command('', postgresOnly(`SET LOCAL lock_timeout = '300ms'`))
const FORGET = command('partitions.remove', postgresOnly('DELETE FROM job_partition WHERE lower = :from'))
const MAX_TRIES = 3

async function dropRange(chore: Connected, range: PartitionRange): Promise<void> {
  for (let tries = 1; tries <= MAX_TRIES; tries += 1) {
    try {
      return await chore.transaction((tx) => dropTables(tx, range), { isRepeatable: true })
    } catch (error) {
      if (!isTimeout(error)) throw error
    }
  }
}

async function dropTables(tx: Queryable, range: PartitionRange): Promise<void> {
  await lockPartitions(tx)
  const ranges = await listPartitions(tx)
  if (!ranges.some(({ from, to }) => from === range.from && to === range.to)) return
  const [done, outputs] = [partitionName('job_done', range), partitionName('output', range)]
  const tables = PARTITIONED_TABLES.map((table) => partitionName(table, range)).join(', ')
  await tx.run(SHORT_WAIT)
  // Whoever wrote into the range before is seen by the next statement; whoever comes later finds it missing and makes it anew.
  await tx.run(command('', postgresOnly(`LOCK TABLE ${tables} IN ACCESS EXCLUSIVE MODE`)))
  const hasRows = query(
    '',
    answer,
    postgresOnly(`SELECT EXISTS (SELECT 1 FROM ${done}) OR EXISTS (SELECT 1 FROM ${outputs})
      OR EXISTS (SELECT 1 FROM job WHERE expires_at >= :from AND expires_at < :to) AS is_so`),
  )
  if ((await tx.get(hasRows, { from: range.from, to: range.to }))?.isSo !== false) return
  await tx.run(command('', postgresOnly(`DROP TABLE ${tables}`)))
  await tx.run(FORGET, { from: range.from })
}
