/**
 * A job's position in its account's queue of a pool: higher priority first, then submit order. Counting stops after a thousand
 * entries on either side; in between the position is estimated, so that no read ever counts a whole backlog.
 */
import type { DatabaseSync } from 'node:sqlite'
import { prepareRows } from '../statement.ts'

export interface QueuedJob {
  readonly seq: number
  readonly accountId: string
  readonly pool: string
  readonly priority: number
}

const COUNTED = 1_000

const SAME_QUEUE = `status = 'queued' AND account_id = ?1 AND pool = ?2`

function prepareCount(database: DatabaseSync, condition: string) {
  const sql = `SELECT count(*) FROM (SELECT 1 FROM job WHERE ${SAME_QUEUE} AND ${condition} LIMIT ${COUNTED})`
  return prepareRows<[number]>(database, sql)
}

/** How many stand on one side of the job, never more than `COUNTED`. */
function prepareSide(database: DatabaseSync, side: 'ahead' | 'behind') {
  const byPriority = prepareCount(database, side === 'ahead' ? 'priority > ?3' : 'priority < ?3')
  const bySeq = prepareCount(database, `priority = ?3 AND seq ${side === 'ahead' ? '<' : '>'} ?4`)
  return ({ accountId, pool, priority, seq }: QueuedJob): number => {
    const others = byPriority.get(accountId, pool, priority)?.[0] ?? 0
    if (others >= COUNTED) return COUNTED
    return Math.min(COUNTED, others + (bySeq.get(accountId, pool, priority, seq)?.[0] ?? 0))
  }
}

export function prepareQueuePosition(database: DatabaseSync): (job: QueuedJob) => number {
  const countAhead = prepareSide(database, 'ahead')
  const countBehind = prepareSide(database, 'behind')
  const selectTotal = prepareRows<[number]>(database, 'SELECT queued FROM account WHERE id = ?')
  const selectEnds = prepareRows<[number, number]>(
    database,
    `SELECT (SELECT seq FROM job WHERE ${SAME_QUEUE} AND priority = ?3 ORDER BY seq LIMIT 1),
       (SELECT seq FROM job WHERE ${SAME_QUEUE} AND priority = ?3 ORDER BY seq DESC LIMIT 1)`,
  )
  return (job) => {
    const ahead = countAhead(job)
    if (ahead < COUNTED) return ahead + 1
    // The account's counter spans all its pools, so from here on the answer is an estimate for accounts that use several.
    const total = selectTotal.get(job.accountId)?.[0] ?? 0
    const behind = countBehind(job)
    if (behind < COUNTED) return Math.max(COUNTED + 1, total - behind)
    const [first, last] = selectEnds.get(job.accountId, job.pool, job.priority) ?? [job.seq, job.seq]
    const share = (job.seq - first + 1) / (last - first + 1)
    return Math.max(COUNTED + 1, Math.min(total - COUNTED, Math.round(total * share)))
  }
}

/** A job whose position is known. */
export interface PositionedJob extends QueuedJob {
  readonly position: number
}

/**
 * The position of a job, counted from that of another job of the same queue and priority: on a page of a listing most jobs
 * are close to each other. null when the two are not.
 */
export function preparePositionNear(
  database: DatabaseSync,
): (job: QueuedJob, neighbour: PositionedJob) => number | null {
  const countBetween = prepareCount(database, 'priority = ?3 AND seq > ?4 AND seq <= ?5')
  return ({ seq, accountId, pool, priority }, neighbour) => {
    if (accountId !== neighbour.accountId || pool !== neighbour.pool || priority !== neighbour.priority) return null
    const [older, newer] = seq < neighbour.seq ? [seq, neighbour.seq] : [neighbour.seq, seq]
    const between = countBetween.get(accountId, pool, priority, older, newer)?.[0] ?? COUNTED
    if (between >= COUNTED) return null
    return seq < neighbour.seq ? Math.max(1, neighbour.position - between) : neighbour.position + between
  }
}

/**
 * The position of a job that was queued a moment ago, when `queued` jobs of its account wait, itself included. Nearly always
 * it is the last of its account's only queue, and then the counter is the answer.
 */
export function prepareNewestPosition(database: DatabaseSync): (job: QueuedJob, queued: number) => number {
  const queuePosition = prepareQueuePosition(database)
  const selectOthers = prepareRows<[number]>(
    database,
    `SELECT EXISTS (SELECT 1 FROM job WHERE ${SAME_QUEUE} AND priority < ?3)
      OR EXISTS (SELECT 1 FROM job WHERE status = 'queued' AND account_id = ?1 AND pool < ?2)
      OR EXISTS (SELECT 1 FROM job WHERE status = 'queued' AND account_id = ?1 AND pool > ?2)`,
  )
  return (job, queued) => {
    if (queued <= 1) return 1
    const isLast = selectOthers.get(job.accountId, job.pool, job.priority)?.[0] === 0
    return isLast ? queued : queuePosition(job)
  }
}
