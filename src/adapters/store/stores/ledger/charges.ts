/** What was charged in a period, by day and by what it was for. */
import type { ChargedWork, ChargeGroup, ChargeQuery, Charges } from '../../../../domain/credits/charges.ts'
import { all, type Steps } from '../../statements/operation.ts'
import { query, type Words } from '../../statements/statement.ts'
import { integer, nullable, shape, text } from '../../tables/table.ts'

/** `place` of a day, or the name and work of a group; the last row has what is held, as its charge. */
const row = shape({
  what: text<'day' | 'group' | 'held'>(),
  place: nullable(integer()),
  name: nullable(text()),
  work: nullable(text<ChargedWork>()),
  charged: integer(),
  refunded: integer(),
  charges: integer(),
})

export const WORK = `CASE WHEN reference LIKE 'job:%' THEN 'job' ELSE 'call' END`

/** What a group is called, and its work where that belongs to it. */
const GROUPS: Record<ChargeGroup, readonly [name: string, work: string]> = {
  day: ['NULL', 'NULL'],
  model: ['model', WORK],
  pool: ['pool', WORK],
  endpoint: ['endpoint', 'NULL'],
  key: ['key_id', 'NULL'],
  account: ['account_id', 'NULL'],
}

/** Each day of `:edges`, by its place: where it begins and ends. */
export function dayEdges({ either }: Words): string {
  return either(
    `SELECT CAST(day.key AS INTEGER) AS place, day.value AS begins, next.value AS ends
     FROM json_each(:edges) AS day JOIN json_each(:edges) AS next ON CAST(next.key AS INTEGER) = CAST(day.key AS INTEGER) + 1`,
    `SELECT place - 1 AS place, at AS begins, lead(at) OVER (ORDER BY place) AS ends
     FROM unnest(:edges::bigint[]) WITH ORDINALITY AS edges (at, place)`,
  )
}

/**
 * Every entry of the period is looked at once. Days and groups are summed up from the same rows, so they cannot disagree, whatever is
 * written meanwhile. The days come first, and each looks its entries up by time.
 */
function chargesBy(by: ChargeGroup, isOfOne: boolean) {
  const [name, work] = GROUPS[by]
  const sums = 'sum(charged) AS charged, sum(refunded) AS refunded, sum(charges) AS charges'
  const groups = `UNION ALL SELECT * FROM (
      SELECT 'group', CAST(NULL AS bigint), name, work, ${sums} FROM charge GROUP BY name, work
      ORDER BY 5 DESC, 3, 4 LIMIT CAST(:limit AS bigint)) AS dearest`
  return query(
    `ledger.charges.${by}.${isOfOne ? 'one' : 'all'}`,
    row,
    (words) => `
    WITH edge AS (${dayEdges(words)}),
    charge AS MATERIALIZED (
      SELECT place, CAST(${name} AS text) AS name, CAST(${work} AS text) AS work, sum(charged) AS charged,
        -sum(CASE WHEN kind = 'refund' THEN charged ELSE 0 END) AS refunded,
        sum(CASE WHEN kind = 'settle' THEN 1 ELSE 0 END) AS charges
      FROM edge ${words.either(`CROSS JOIN ledger_entry INDEXED BY ledger_entry_${isOfOne ? 'period' : 'charges'}`, 'JOIN ledger_entry')}
        ON at >= begins AND at < ends AND kind IN ('settle', 'refund') ${isOfOne ? 'AND account_id = :accountId' : ''}
      GROUP BY 1, 2, 3)
    SELECT 'day' AS what, place, CAST(NULL AS text) AS name, CAST(NULL AS text) AS work, ${sums} FROM charge GROUP BY place
    ${by === 'day' ? '' : groups}
    UNION ALL SELECT 'held', NULL, NULL, NULL, coalesce(sum(held), 0), 0, 0 FROM credit_account
      ${isOfOne ? 'WHERE account_id = :accountId' : ''}`,
  )
}

function ofEach(isOfOne: boolean) {
  const of = (by: ChargeGroup) => chargesBy(by, isOfOne)
  return {
    day: of('day'),
    model: of('model'),
    pool: of('pool'),
    endpoint: of('endpoint'),
    key: of('key'),
    account: of('account'),
  }
}

const OF_ONE = ofEach(true)
const OF_ALL = ofEach(false)

export function* readCharges({ accountId, edges, by, limit }: ChargeQuery): Steps<Charges> {
  const period = { edges: edges.map((edge) => edge.getTime()), limit }
  const rows = yield* accountId === null ? all(OF_ALL[by], period) : all(OF_ONE[by], { ...period, accountId })
  const sums = rows.map(({ what, place, name, work, charged, refunded, charges }) => ({
    ...{ what, place: place ?? 0, name, work },
    ...{ sum: { charged, refunded, count: charges } },
  }))
  return {
    days: sums
      .filter(({ what }) => what === 'day')
      .map(({ place, sum }) => ({ place, ...sum }))
      .sort((a, b) => a.place - b.place),
    groups: sums.filter(({ what }) => what === 'group').map(({ name, work, sum }) => ({ name, work, ...sum })),
    held: rows.find(({ what }) => what === 'held')?.charged ?? 0,
  }
}
