/**
 * Parts of the statements of a claim. A head is the first waiting job of an account in a lane: nothing behind it is looked at, so a
 * backlog costs nothing. $1 is the pool in all of them, $2 the present moment.
 */
// Each costs some 15 microseconds. Where more accounts wait in a lane a claim looks at a part of them, and the next claim of this
// process at the part after that: then the order is fair inside each part, and every part gets its turn.
const MAX_HEADS = 32
// Where jobs wait in more lanes, a claim looks at a part of these as well.
const MAX_LANES = 64

/** The lane and account where the part that was looked at ends; null when it was the last part. */
export type End = readonly [lane: string, accountId: string] | null

export const WAITS = `status = 'queued' AND pool = $1 AND expires_at > $2`

/** By the key of each account: a join would be free to walk all accounts. */
export const ROOM_OF_HEAD = `
  CROSS JOIN LATERAL (
    SELECT running, served, max_running FROM account_load
    WHERE account_load.account_id = head.account_id AND running < max_running OFFSET 0) AS load`

/** Where a part begins: the numbers of the statement's values. */
export interface Beginning {
  readonly lane: string
  readonly account: string
}

/**
 * The first job of every account in each lane, found by stepping from one to the next; a job whose time is over is left to the
 * sweep that ends it.
 */
export const allHeads = ({ lane, account }: Beginning) => `
  head AS (
    (SELECT needs, account_id, seq, 1 AS depth FROM job WHERE ${WAITS} AND (needs, account_id) > (${lane}, ${account})
     ORDER BY needs, account_id, priority DESC, seq LIMIT 1)
    UNION ALL
    SELECT further.*, head.depth + 1 FROM head CROSS JOIN LATERAL (
      SELECT needs, account_id, seq FROM job WHERE ${WAITS} AND (needs, account_id) > (head.needs, head.account_id)
      ORDER BY needs, account_id, priority DESC, seq LIMIT 1) AS further
    WHERE head.depth < ${MAX_HEADS})`

export const END_OF_ALL = `(SELECT ARRAY[needs, account_id] FROM head WHERE depth = ${MAX_HEADS})`

const firstOf = (condition: string) => `
  SELECT seq, needs, account_id, priority FROM job WHERE ${WAITS} AND ${condition}
  ORDER BY account_id, priority DESC, seq LIMIT 1`

/**
 * The first job of every account in each lane that is among `offered`. `lane`: the lanes in which jobs wait, found by stepping from
 * one to the next.
 */
export const offeredHeads = (offered: string, { lane, account }: Beginning) => `
  lane AS (
    (SELECT needs, 1 AS depth FROM job WHERE status = 'queued' AND pool = $1 AND needs > ${lane} ORDER BY needs LIMIT 1)
    UNION ALL
    SELECT further.needs, lane.depth + 1 FROM lane CROSS JOIN LATERAL (
      SELECT needs FROM job WHERE status = 'queued' AND pool = $1 AND needs > lane.needs ORDER BY needs LIMIT 1) AS further
    WHERE lane.depth < ${MAX_LANES}),
  offer AS MATERIALIZED (${offered}),
  head AS (
    SELECT first.*, 1 AS depth FROM (SELECT DISTINCT lane FROM offer) AS offered CROSS JOIN LATERAL (
      ${firstOf(`needs = offered.lane AND account_id > ${account}`)}) AS first
    UNION ALL
    SELECT further.*, head.depth + 1 FROM head CROSS JOIN LATERAL (
      ${firstOf('needs = head.needs AND account_id > head.account_id')}) AS further
    WHERE head.depth < ${MAX_HEADS})`

/** The other accounts of these lanes come first, then the other lanes. */
export const endOfOffered = ({ lane }: Beginning) => `coalesce(
  (SELECT ARRAY[${lane}, min(account_id)] FROM head WHERE depth = ${MAX_HEADS} HAVING count(*) > 0),
  (SELECT ARRAY[needs, ''] FROM lane WHERE depth = ${MAX_LANES}))`

/** What an earlier attempt showed is replaced by what this one makes. */
export const start = (hold: string) => `
  UPDATE job SET status = 'running', started_at = $2, ${hold}, attempt = attempt + 1, version = version + 1,
    outputs_replaced = outputs_replaced + output_count, output_count = 0, outputs_reused = 0`
