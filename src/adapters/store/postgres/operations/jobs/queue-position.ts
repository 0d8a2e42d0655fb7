/** The positions of jobs in the transaction that queues them. */
import { type Queryable, statement } from '../../database/statement.ts'

const COUNTED = 1_000

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
