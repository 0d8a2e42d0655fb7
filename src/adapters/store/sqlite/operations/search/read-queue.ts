/** What is read for many jobs at once: their outputs, and the beginning of a queue with its latest runs. */
import type { DatabaseSync } from 'node:sqlite'
import { LOOKED_AT_ENDED, READ_ENDED, READ_HELD, READ_WAITING } from '../../../../../domain/jobs/waits/queue-reading.ts'
import type { OutputRow } from '../../../rows/jobs/job-row.ts'
import type { EndedRow, HeldRow, QueueRows, WaitingRow } from '../../../rows/jobs/queue-rows.ts'
import { prepareOutputs } from '../jobs/job-outputs.ts'
import { prepareRows } from '../statement.ts'

export function prepareFindOutputs(
  database: DatabaseSync,
): (input: { readonly accountId: string; readonly jobIds: readonly string[] }) => [id: string, OutputRow[]][] {
  const outputsOf = prepareOutputs(database)
  const findSeq = prepareRows<[number]>(database, 'SELECT seq FROM job WHERE id = ? AND account_id = ?')
  return ({ accountId, jobIds }) =>
    jobIds.flatMap((id) => {
      const found = findSeq.get(id, accountId)
      return found === undefined ? [] : [[id, outputsOf(found[0])]]
    })
}

export function prepareReadQueue(
  database: DatabaseSync,
): (input: { readonly accountId: string; readonly pool: string }) => QueueRows {
  const waiting = prepareRows<WaitingRow>(
    database,
    `SELECT id, recipe, priority FROM job INDEXED BY job_queue WHERE status = 'queued' AND account_id = ? AND pool = ?
     ORDER BY priority DESC, seq LIMIT ${READ_WAITING}`,
  )
  const held = prepareRows<HeldRow>(
    database,
    `SELECT recipe, started_at FROM job INDEXED BY job_listing
     WHERE account_id = ? AND pool = ? AND status IN ('running', 'canceling') LIMIT ${READ_HELD}`,
  )
  const ended = prepareRows<EndedRow>(
    database,
    `SELECT recipe, priority, seq, created_at, started_at, completed_at FROM (
       SELECT * FROM job INDEXED BY job_ended
       WHERE status IN ('succeeded', 'failed', 'canceled') AND started_at IS NOT NULL AND account_id = ?1
       ORDER BY completed_at DESC, seq DESC LIMIT ${LOOKED_AT_ENDED})
     WHERE pool = ?2 AND attempt = 1 LIMIT ${READ_ENDED}`,
  )
  return ({ accountId, pool }) => ({
    waiting: waiting.all(accountId, pool),
    held: held.all(accountId, pool),
    ended: ended.all(accountId, pool),
  })
}
