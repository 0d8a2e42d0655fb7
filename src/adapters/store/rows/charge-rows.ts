/** The statement behind `charges`, the same for both stores but for a few words, and how its rows are read. */
import type { ChargedWork, ChargeGroup, Charges } from '../../../domain/credits/charges.ts'

/** `place` of a day, or the name and work of a group; the last row has what is held, as its charge. */
export type ChargeRow = [
  what: 'day' | 'group' | 'held',
  place: number | null,
  name: string | null,
  work: ChargedWork | null,
  charged: number,
  refunded: number,
  count: number,
]

const WORK = `CASE WHEN reference LIKE 'job:%' THEN 'job' ELSE 'call' END`

/** What a group is called, and its work where that belongs to it. */
const GROUPS: Record<ChargeGroup, readonly [name: string, work: string]> = {
  day: ['NULL', 'NULL'],
  model: ['model', WORK],
  pool: ['pool', WORK],
  key: ['key_id', 'NULL'],
  account: ['account_id', 'NULL'],
}

interface Words {
  /** A table `edge` of place, begins, ends. */
  readonly edges: string
  readonly limit: string
  /** The account's id as a parameter; null: all accounts. */
  readonly account: string | null
  readonly text: string
  readonly whole: (sum: string) => string
  /** Between the days and the ledger: the days come first, and each looks its entries up by time. */
  readonly join: string
}

/**
 * Every entry of the period is looked at once. Days and groups are summed up from the same rows, so they cannot disagree, whatever is
 * written meanwhile.
 */
export function chargesSql(by: ChargeGroup, { edges, limit, account, text, whole, join }: Words): string {
  const [name, work] = GROUPS[by]
  const ofAccount = account === null ? '' : `AND account_id = ${account}`
  const sums = `${whole('sum(charged)')}, ${whole('sum(refunded)')}, ${whole('sum(charges)')}`
  const groups =
    by === 'day'
      ? ''
      : `UNION ALL SELECT * FROM (
           SELECT 'group', CAST(NULL AS bigint), name, work, ${sums} FROM charge GROUP BY name, work ORDER BY 5 DESC, 3, 4 LIMIT ${limit}
         ) AS dearest`
  return `
    WITH edge AS (${edges}), charge AS MATERIALIZED (
      SELECT place, CAST(${name} AS ${text}) AS name, CAST(${work} AS ${text}) AS work, sum(charged) AS charged,
        -sum(CASE WHEN kind = 'refund' THEN charged ELSE 0 END) AS refunded,
        sum(CASE WHEN kind = 'settle' THEN 1 ELSE 0 END) AS charges
      FROM edge ${join} at >= begins AND at < ends AND kind IN ('settle', 'refund') ${ofAccount}
      GROUP BY 1, 2, 3
    )
    SELECT 'day' AS what, place, CAST(NULL AS ${text}) AS name, CAST(NULL AS ${text}) AS work, ${sums} FROM charge GROUP BY place
    ${groups}
    UNION ALL SELECT 'held', NULL, NULL, NULL, ${whole('coalesce(sum(held), 0)')}, 0, 0 FROM credit_account
      ${account === null ? '' : `WHERE account_id = ${account}`}`
}

export function toCharges(rows: readonly ChargeRow[]): Charges {
  const sums = ([, , , , charged, refunded, count]: ChargeRow) => ({ charged, refunded, count })
  return {
    days: rows
      .filter(([what]) => what === 'day')
      .map((row) => ({ place: row[1] ?? 0, ...sums(row) }))
      .sort((a, b) => a.place - b.place),
    groups: rows.filter(([what]) => what === 'group').map((row) => ({ name: row[2], work: row[3], ...sums(row) })),
    held: rows.find(([what]) => what === 'held')?.[4] ?? 0,
  }
}
