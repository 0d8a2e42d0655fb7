/**
 * Positions in the queue of an account and pool: higher priority first, then submit order. They are found per queue and not per
 * job: one walk over the first thousand entries answers for all asked jobs among them, one over the last thousand for those at the
 * end, and in between the position is estimated. So no read ever counts a whole backlog, however many jobs are watched.
 */
import { type Queryable, statement } from '../../database/statement.ts'

interface QueuedJob {
  readonly seq: number
  readonly accountId: string
  readonly pool: string
  readonly priority: number
}

const COUNTED = 1_000

type Place = [seq: number, place: number]

function walk(order: string, priority: string, seq: string): string {
  return `
  SELECT walked.seq, walked.place FROM unnest($1::text[], $2::text[]) AS queue(account_id, pool)
  CROSS JOIN LATERAL (
    SELECT seq, row_number() OVER (ORDER BY priority ${priority}, seq ${seq}) AS place FROM (
      SELECT priority, seq FROM job WHERE status = 'queued' AND account_id = queue.account_id AND pool = queue.pool
      ORDER BY ${order} LIMIT ${COUNTED}) AS entry) AS walked
  WHERE walked.seq = ANY($3::bigint[])`
}

const FROM_HEAD = statement<Place>('queue.from_head', walk('priority DESC, seq', 'DESC', 'ASC'))
const FROM_END = statement<Place>('queue.from_end', walk('priority, seq DESC', 'ASC', 'DESC'))

// The first and the last of the same priority, and how many jobs of the account wait in all its pools.
const ENDS = statement<[seq: number, first: number | null, last: number | null, waiting: number]>(
  'queue.ends',
  `SELECT asked.seq,
     (SELECT seq FROM job WHERE status = 'queued' AND account_id = asked.account_id AND pool = asked.pool
        AND priority = asked.priority ORDER BY seq LIMIT 1),
     (SELECT seq FROM job WHERE status = 'queued' AND account_id = asked.account_id AND pool = asked.pool
        AND priority = asked.priority ORDER BY seq DESC LIMIT 1),
     account.submitted - account_load.started
   FROM unnest($1::bigint[], $2::text[], $3::text[], $4::int[]) AS asked(seq, account_id, pool, priority)
   JOIN account ON account.id = asked.account_id JOIN account_load ON account_load.account_id = asked.account_id`,
)

/** By `seq`. A job that has left its queue since it was read has the position that it left from: the first. */
export async function findPositions(db: Queryable, jobs: readonly QueuedJob[]): Promise<ReadonlyMap<number, number>> {
  if (jobs.length === 0) return new Map()
  const positions = new Map(await db.all(FROM_HEAD, toWalk(jobs)))
  const far = jobs.filter(({ seq }) => !positions.has(seq))
  if (far.length === 0) return positions
  const [fromEnd, ends] = await Promise.all([
    db.all(FROM_END, toWalk(far)),
    db.all(ENDS, [
      far.map(({ seq }) => seq),
      far.map(({ accountId }) => accountId),
      far.map(({ pool }) => pool),
      far.map(({ priority }) => priority),
    ]),
  ])
  const placesFromEnd = new Map(fromEnd)
  for (const [seq, first, last, waiting] of ends) {
    positions.set(seq, estimate(seq, { first, last, waiting, placeFromEnd: placesFromEnd.get(seq) ?? null }))
  }
  return positions
}

function toWalk(jobs: readonly QueuedJob[]): readonly unknown[] {
  const queues = new Map(jobs.map((job) => [`${job.accountId} ${job.pool}`, job]))
  return [
    [...queues.values()].map(({ accountId }) => accountId),
    [...queues.values()].map(({ pool }) => pool),
    jobs.map(({ seq }) => seq),
  ]
}

interface Surroundings {
  readonly first: number | null
  readonly last: number | null
  /** Of all pools of the account: from here on the answer is an estimate for accounts that use several. */
  readonly waiting: number
  readonly placeFromEnd: number | null
}

function estimate(seq: number, { first, last, waiting, placeFromEnd }: Surroundings): number {
  if (first === null || last === null || seq < first) return 1
  if (placeFromEnd !== null) return Math.max(COUNTED + 1, waiting - placeFromEnd + 1)
  const share = (seq - first + 1) / (last - first + 1)
  return Math.max(COUNTED + 1, Math.min(waiting - COUNTED, Math.round(waiting * share)))
}

/** Where a new job is put: all of its priority and above stand before it. */
export interface QueuePlace {
  readonly accountId: string
  readonly pool: string
  readonly priority: number
}

// Each question is about one end of an ordered index range: asked as EXISTS it would be answered by reading the whole table, because
// the server expects to come across an answer soon.
const AHEAD = statement<[ahead: number | null]>(
  'queue.ahead',
  `SELECT CASE WHEN asked.must_count
       OR (SELECT priority FROM job WHERE status = 'queued' AND account_id = asked.account_id AND pool = asked.pool
           ORDER BY priority, seq DESC LIMIT 1) < asked.priority
       OR (SELECT pool FROM job WHERE status = 'queued' AND account_id = asked.account_id
           ORDER BY pool, priority DESC, seq LIMIT 1) <> asked.pool
       OR (SELECT pool FROM job WHERE status = 'queued' AND account_id = asked.account_id
           ORDER BY pool DESC, priority, seq DESC LIMIT 1) <> asked.pool
     THEN (SELECT count(*) FROM (
         SELECT 1 FROM job WHERE status = 'queued' AND account_id = asked.account_id AND pool = asked.pool
           AND priority >= asked.priority ORDER BY priority DESC, seq LIMIT ${COUNTED}) AS before)
     END
   FROM unnest($1::text[], $2::text[], $3::int[], $4::boolean[]) WITH ORDINALITY
     AS asked(account_id, pool, priority, must_count, place)
   ORDER BY asked.place`,
)

/**
 * Says the position of each job that is queued in this transaction, which holds the lock of its account. Nearly always a job is the
 * last of its account's only queue, and then the account's counter is the answer; otherwise those ahead are counted.
 */
export async function readNewPositions(
  tx: Queryable,
  places: readonly QueuePlace[],
): Promise<(place: QueuePlace, waiting: number) => number> {
  const distinct = new Map(places.map((place) => [nameOf(place), place]))
  const perAccount = Map.groupBy(distinct.values(), ({ accountId }) => accountId)
  const asked = [...distinct.values()]
  const rows = await tx.all(AHEAD, [
    asked.map(({ accountId }) => accountId),
    asked.map(({ pool }) => pool),
    asked.map(({ priority }) => priority),
    // Jobs of this batch may get in each other's way.
    asked.map(({ accountId }) => (perAccount.get(accountId)?.length ?? 0) > 1),
  ])
  const aheads = new Map(asked.map((place, index) => [nameOf(place), rows[index]?.[0] ?? null]))
  return (place, waiting) => {
    const ahead = aheads.get(nameOf(place)) ?? null
    for (const other of perAccount.get(place.accountId) ?? []) {
      if (other.pool !== place.pool || other.priority > place.priority) continue
      const before = aheads.get(nameOf(other)) ?? null
      if (before !== null) aheads.set(nameOf(other), before + 1)
    }
    return ahead !== null && ahead < COUNTED ? ahead + 1 : waiting
  }
}

function nameOf({ accountId, pool, priority }: QueuePlace): string {
  return `${accountId} ${pool} ${priority}`
}
