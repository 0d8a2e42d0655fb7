/**
 * Positions in the queue of an account and pool: higher priority first, then submit order. They are found per queue and not per
 * job: one walk over the first thousand entries answers for all asked jobs among them, one over the last thousand for those at the
 * end, and in between the position is estimated. So no read ever counts a whole backlog, however many jobs are watched.
 */
import { all, get, type Steps, together } from '../statements/operation.ts'
import { query } from '../statements/statement.ts'
import { integer, nullable, shape } from '../tables/table.ts'

interface QueuedJob {
  readonly seq: number
  readonly accountId: string
  readonly pool: string
  readonly priority: number
}

const COUNTED = 1_000
const SAME_QUEUE = `status = 'queued' AND account_id = :accountId AND pool = :pool`

const walk = (name: string, order: string) =>
  query(
    name,
    shape({ seq: integer(), place: integer() }),
    (words) => `
      SELECT seq, place FROM (
        SELECT seq, row_number() OVER (ORDER BY ${order}) AS place FROM (
          SELECT priority, seq FROM job WHERE ${SAME_QUEUE} ORDER BY ${order} LIMIT ${COUNTED}) AS entry) AS walked
      WHERE ${words.isIn('seq', ':seqs')}`,
  )
const FROM_HEAD = walk('queue.fromHead', 'priority DESC, seq')
const FROM_END = walk('queue.fromEnd', 'priority, seq DESC')

// The first and the last of the same priority, and how many jobs of the account wait in all its pools.
const ENDS = query(
  'queue.surroundings',
  shape({ first: nullable(integer()), last: nullable(integer()), waiting: nullable(integer()) }),
  ({ either }) => `
    SELECT (SELECT seq FROM job WHERE ${SAME_QUEUE} AND priority = :priority ORDER BY seq LIMIT 1) AS first,
      (SELECT seq FROM job WHERE ${SAME_QUEUE} AND priority = :priority ORDER BY seq DESC LIMIT 1) AS last,
      ${either(
        '(SELECT queued FROM account WHERE id = :accountId)',
        '(SELECT submitted - started FROM account JOIN account_load ON account_id = id WHERE id = :accountId)',
      )} AS waiting`,
)

/** By `seq`. A job that has left its queue since it was read has the position that it left from: the first. */
export function* findPositions(jobs: readonly QueuedJob[]): Steps<ReadonlyMap<number, number>> {
  if (jobs.length === 0) return new Map()
  const positions = yield* walkQueues(FROM_HEAD, jobs)
  const far = jobs.filter(({ seq }) => !positions.has(seq))
  if (far.length === 0) return positions
  const fromEnd = yield* walkQueues(FROM_END, far)
  const levels = [...Map.groupBy(far, ({ accountId, pool, priority }) => `${accountId} ${pool} ${priority}`).values()]
  const asked = levels.flatMap(([first]) => {
    if (first === undefined) return []
    const { accountId, pool, priority } = first
    return [get(ENDS, { accountId, pool, priority })]
  })
  for (const [index, ends] of (yield* together(...asked)).entries()) {
    for (const { seq } of levels[index] ?? []) positions.set(seq, estimate(seq, fromEnd.get(seq) ?? null, ends))
  }
  return positions
}

function* walkQueues(statement: typeof FROM_HEAD, jobs: readonly QueuedJob[]): Steps<Map<number, number>> {
  const queues = [...Map.groupBy(jobs, ({ accountId, pool }) => `${accountId} ${pool}`).values()]
  const asked = queues.flatMap((queue) => {
    const [first] = queue
    if (first === undefined) return []
    return [all(statement, { accountId: first.accountId, pool: first.pool, seqs: queue.map(({ seq }) => seq) })]
  })
  return new Map((yield* together(...asked)).flat().map(({ seq, place }) => [seq, place]))
}

interface Ends {
  readonly first: number | null
  readonly last: number | null
  /** Of all pools of the account: from here on the answer is an estimate for accounts that use several. */
  readonly waiting: number | null
}

function estimate(seq: number, placeFromEnd: number | null, ends: Ends | undefined): number {
  const { first = null, last = null, waiting = null } = ends ?? {}
  if (first === null || last === null || waiting === null || seq < first) return 1
  if (placeFromEnd !== null) return Math.max(COUNTED + 1, waiting - placeFromEnd + 1)
  const share = (seq - first + 1) / (last - first + 1)
  return Math.max(COUNTED + 1, Math.min(waiting - COUNTED, Math.round(waiting * share)))
}
