/**
 * Removes whole ranges of expiry that are over. What their rows count for elsewhere (jobs for their accounts, outputs for storage and
 * blobs) is given back in batches; each batch deletes the rows that it counted, so that a process that dies in the middle leaves
 * nothing counted twice and nothing forgotten. Then the tables of the range are dropped, with all texts, logs and labels in them:
 * these are never deleted row by row, nothing has to be vacuumed, and no space stays behind.
 */

import { giveBackCounts, giveBackOutputs } from '../../../stores/jobs/retention.ts'
import type { Connected } from '../../database/connections.ts'
import {
  listPartitions,
  lockPartitions,
  PARTITIONED_TABLES,
  type PartitionRange,
  partitionName,
} from '../../database/partitions.ts'
import { isTimeout } from '../../database/postgres-error.ts'
import { type Queryable, type Statement, statement } from '../../database/statement.ts'
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

const IS_NEEDED = statement<[boolean]>(
  'partitions.is_needed',
  `SELECT EXISTS (SELECT 1 FROM job WHERE expires_at >= $1 AND expires_at < $2)
     OR EXISTS (SELECT 1 FROM job_done WHERE expires_at >= $1 AND expires_at < $2 AND status = 'expired' AND completed_at > $3)`,
)

/** A job of the range still lives, or became `expired` so late that its owner may still want to see it. */
async function isNeeded(db: Queryable, { from, to }: PartitionRange, expiredBefore: number): Promise<boolean> {
  return (await db.get(IS_NEEDED, [from, to, expiredBefore]))?.[0] !== false
}

// About two thousand rows: a transaction of some milliseconds.
const BLOCKS_AT_ONCE = 64
const CHOSEN_AT_ONCE = 5000

const DELETE_CHOSEN = statement(
  'partitions.delete_chosen',
  `DELETE FROM job_id_chosen WHERE id IN (SELECT id FROM job_id_chosen WHERE expires_at >= $1 AND expires_at < $2 LIMIT $3)`,
)

async function emptyRange(
  chore: Connected,
  range: PartitionRange,
  { now, limit, signal }: Pick<DropInput, 'now' | 'limit' | 'signal'>,
): Promise<number> {
  const outputs = { table: partitionName('output', range), columns: 'account_id, hash, size_bytes' }
  await inBlocks<readonly [accountId: string, hash: string, sizeBytes: number]>(
    chore,
    { ...outputs, limit: Number.POSITIVE_INFINITY, signal },
    (tx, gone) => {
      const records = gone.map(([accountId, hash, sizeBytes]) => ({ accountId, hash, sizeBytes }))
      return runOn(tx, giveBackOutputs(records, new Date(now)))
    },
  )
  const removed = await inBlocks<readonly [accountId: string, status: string]>(
    chore,
    { table: partitionName('job_done', range), columns: 'account_id, status', limit, signal },
    (tx, gone) => runOn(tx, giveBackCounts(gone.map(([accountId, status]) => ({ accountId, status })))),
  )
  const bounds = [range.from, range.to, CHOSEN_AT_ONCE]
  while ((await chore.run(DELETE_CHOSEN, bounds)) === CHOSEN_AT_ONCE);
  return removed
}

interface Blocks {
  readonly table: string
  readonly columns: string
  readonly limit: number
  readonly signal: AbortSignal | undefined
}

/**
 * Deletes the rows of a table in the order in which they lie, some blocks at a time: each block is read once, however many are
 * already empty. Returns how many rows it deleted.
 */
async function inBlocks<Row extends readonly unknown[]>(
  chore: Connected,
  { table, columns, limit, signal }: Blocks,
  giveBack: (tx: Queryable, gone: readonly Row[]) => Promise<void>,
): Promise<number> {
  const size: Statement<[number]> = {
    name: '',
    text: `SELECT pg_relation_size('${table}') / current_setting('block_size')::bigint`,
  }
  const remove: Statement<Row> = {
    name: '',
    text: `DELETE FROM ${table} WHERE ctid >= $1::text::tid AND ctid < $2::text::tid RETURNING ${columns}`,
  }
  const blocks = (await chore.get(size))?.[0] ?? 0
  let deleted = 0
  for (let block = 0; block < blocks && deleted < limit && !signal?.aborted; block += BLOCKS_AT_ONCE) {
    const bounds = [`(${block},0)`, `(${block + BLOCKS_AT_ONCE},0)`]
    deleted += await chore.transaction(
      async (tx) => {
        const gone = await tx.all(remove, bounds)
        await giveBack(tx, gone)
        return gone.length
      },
      { isRepeatable: true },
    )
  }
  return deleted
}

// Everything that reads ended jobs waits for as long as this waits: so it gives up early, and tries again at the next sweep.
const SHORT_WAIT: Statement = { name: '', text: `SET LOCAL lock_timeout = '300ms'` }
const FORGET = statement('partitions.remove', 'DELETE FROM job_partition WHERE lower = $1')
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
  const [done, output] = [partitionName('job_done', range), partitionName('output', range)]
  const tables = PARTITIONED_TABLES.map((table) => partitionName(table, range)).join(', ')
  await tx.run(SHORT_WAIT)
  // Whoever wrote into the range before is seen by the next statement; whoever comes later finds it missing and makes it anew.
  await tx.run({ name: '', text: `LOCK TABLE ${tables} IN ACCESS EXCLUSIVE MODE` })
  const hasRows: Statement<[boolean]> = {
    name: '',
    text: `SELECT EXISTS (SELECT 1 FROM ${done}) OR EXISTS (SELECT 1 FROM ${output})
      OR EXISTS (SELECT 1 FROM job WHERE expires_at >= $1 AND expires_at < $2)`,
  }
  if ((await tx.get(hasRows, [range.from, range.to]))?.[0] !== false) return
  await tx.run({ name: '', text: `DROP TABLE ${tables}` })
  await tx.run(FORGET, [range.from])
}
