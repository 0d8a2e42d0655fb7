/** The positions of jobs in the transaction that queues them. */
import { all, type Steps } from '../../statements/operation.ts'
import { query } from '../../statements/statement.ts'
import { integer, nullable, shape } from '../../tables/table.ts'

const COUNTED = 1_000

/** Where a new job is put: all of its priority, as it is stored, and above stand before it. */
interface QueuePlace {
  readonly accountId: string
  readonly pool: string
  readonly priority: number
}

/** `waiting`: how many jobs of the account wait, this one included. */
export type PositionOf = (place: QueuePlace, waiting: number) => number

// Each question is about one end of an ordered index range: asked as EXISTS a server would answer it by reading the whole table, because
// it expects to come across an answer soon. SQLite queues one job at a time.
const AHEAD = query(
  'queue.ahead',
  shape({ ahead: nullable(integer()) }),
  ({ either }) => `
    SELECT CASE WHEN given.must_count
        OR (SELECT priority FROM job WHERE status = 'queued' AND account_id = given.account_id AND pool = given.pool
            ORDER BY priority, seq DESC LIMIT 1) < given.priority
        OR (SELECT pool FROM job WHERE status = 'queued' AND account_id = given.account_id
            ORDER BY pool, priority DESC, seq LIMIT 1) <> given.pool
        OR (SELECT pool FROM job WHERE status = 'queued' AND account_id = given.account_id
            ORDER BY pool DESC, priority, seq DESC LIMIT 1) <> given.pool
      THEN (SELECT count(*) FROM (
          SELECT 1 FROM job WHERE status = 'queued' AND account_id = given.account_id AND pool = given.pool
            AND priority >= given.priority ORDER BY priority DESC, seq LIMIT ${COUNTED}) AS entry)
      END AS ahead
    FROM ${either(
      '(SELECT :accountId AS account_id, :pool AS pool, :priority AS priority, false AS must_count) AS given',
      `unnest(:accountIds::text[], :pools::text[], :priorities::int[], :mustCount::int[]::boolean[]) WITH ORDINALITY
         AS given(account_id, pool, priority, must_count, place) ORDER BY given.place`,
    )}`,
)

/**
 * Says the position of each job that is queued in this transaction, which holds the lock of its account. Nearly always a job is the
 * last of its account's only queue, and then the account's counter is the answer; otherwise those ahead are counted.
 */
export function* findNewPositions(places: readonly QueuePlace[]): Steps<PositionOf> {
  const distinct = new Map(places.map((place) => [nameOf(place), place]))
  const perAccount = Map.groupBy(distinct.values(), ({ accountId }) => accountId)
  const asked = [...distinct.values()]
  const found = yield* all(AHEAD, {
    ...{ accountId: asked[0]?.accountId ?? '', pool: asked[0]?.pool ?? '', priority: asked[0]?.priority ?? 0 },
    accountIds: asked.map(({ accountId }) => accountId),
    pools: asked.map(({ pool }) => pool),
    priorities: asked.map(({ priority }) => priority),
    // Jobs of this batch may get in each other's way.
    mustCount: asked.map(({ accountId }) => Number((perAccount.get(accountId)?.length ?? 0) > 1)),
  })
  const aheads = new Map(asked.map((place, index) => [nameOf(place), found[index]?.ahead ?? null]))
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
