/** What is read for many jobs at once: their outputs, and the beginning of a queue with its latest runs. */
import type { Output } from '../../../../../domain/jobs/job.ts'
import type { OutputsOf } from '../../../../../domain/jobs/summaries/summary-store.ts'
import {
  LOOKED_AT_ENDED,
  type QueueReading,
  READ_ENDED,
  READ_HELD,
  READ_WAITING,
} from '../../../../../domain/jobs/waits/queue-reading.ts'
import { toOutput } from '../../../rows/jobs/job-row.ts'
import { type EndedRow, type HeldRow, toQueueReading, type WaitingRow } from '../../../rows/jobs/queue-rows.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { findOutputs } from '../jobs/job-outputs.ts'

const OWN = statement<[id: string, expiresAt: number]>(
  'search.own',
  `SELECT id, expires_at FROM job WHERE id = ANY($1::uuid[]) AND account_id = $2
   UNION ALL SELECT done.id, done.expires_at FROM unnest($1::uuid[], $3::bigint[]) AS asked(id, expires_at)
   CROSS JOIN LATERAL (
     SELECT id, expires_at FROM job_done WHERE id = asked.id AND expires_at = asked.expires_at AND account_id = $2 OFFSET 0) AS done`,
)

export async function findListed(
  read: Queryable,
  accountId: string,
  jobs: readonly OutputsOf[],
): Promise<ReadonlyMap<string, readonly Output[]>> {
  const expiries = jobs.map(({ expiresAt }) => expiresAt.getTime())
  const own = await read.all(OWN, [jobs.map(({ id }) => id), accountId, expiries])
  const outputs = await findOutputs(
    read,
    own.map(([id, expiresAt]) => ({ id, expiresAt })),
  )
  return new Map([...outputs].map(([id, rows]) => [id, rows.map(toOutput)]))
}

const WAITING = statement<WaitingRow>(
  'waits.waiting',
  `SELECT id, recipe, priority FROM job WHERE status = 'queued' AND account_id = $1 AND pool = $2
   ORDER BY priority DESC, seq LIMIT ${READ_WAITING}`,
)
const HELD = statement<HeldRow>(
  'waits.held',
  `SELECT recipe, started_at FROM job WHERE status IN ('running', 'canceling') AND account_id = $1 AND pool = $2
   LIMIT ${READ_HELD}`,
)
const ENDED = statement<EndedRow>(
  'waits.ended',
  `SELECT recipe, priority, seq, created_at, started_at, completed_at FROM (
     SELECT * FROM job_done WHERE account_id = $1 ORDER BY completed_at DESC, seq DESC LIMIT ${LOOKED_AT_ENDED}) AS latest
   WHERE pool = $2 AND attempt = 1 AND started_at IS NOT NULL LIMIT ${READ_ENDED}`,
)

export async function readQueue(read: Queryable, accountId: string, pool: string): Promise<QueueReading> {
  const asked = [accountId, pool]
  const [waiting, held, ended] = await Promise.all([
    read.all(WAITING, asked),
    read.all(HELD, asked),
    read.all(ENDED, asked),
  ])
  return toQueueReading({ waiting, held, ended })
}
