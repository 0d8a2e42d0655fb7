/** What was charged in a period, by day and by what it was for. */
import type { DatabaseSync } from 'node:sqlite'
import { CHARGE_GROUPS, type ChargeGroup, type Charges } from '../../../../../domain/credits/charges.ts'
import { type ChargeRow, chargesSql, toCharges } from '../../../rows/charge-rows.ts'
import { prepareRows, type RowStatement } from '../statement.ts'

interface ChargesInput {
  readonly accountId: string | null
  /** JSON list of milliseconds. */
  readonly edges: string
  readonly by: ChargeGroup
  readonly limit: number
}

export function prepareCharges(database: DatabaseSync): (input: ChargesInput) => Charges {
  const prepared = new Map<string, RowStatement<ChargeRow>>()
  // Each is prepared when it is first asked for: most services never are.
  const statementFor = (by: ChargeGroup, isOfOne: boolean): RowStatement<ChargeRow> => {
    const name = `${by} ${isOfOne}`
    const known = prepared.get(name) ?? prepareRows<ChargeRow>(database, toSql(by, isOfOne))
    prepared.set(name, known)
    return known
  }
  return ({ accountId, edges, by, limit }) => {
    const group = CHARGE_GROUPS.find((each) => each === by) ?? 'day'
    const values = [edges, ...(accountId === null ? [] : [accountId]), ...(group === 'day' ? [] : [limit])]
    return toCharges(statementFor(group, accountId !== null).all(...values))
  }
}

function toSql(by: ChargeGroup, isOfOne: boolean): string {
  const index = isOfOne ? 'ledger_entry_period' : 'ledger_entry_charges'
  return chargesSql(by, {
    edges: `SELECT CAST(day.key AS INTEGER) AS place, day.value AS begins, next.value AS ends
      FROM json_each(?1) AS day JOIN json_each(?1) AS next ON CAST(next.key AS INTEGER) = CAST(day.key AS INTEGER) + 1`,
    account: isOfOne ? '?2' : null,
    limit: isOfOne ? '?3' : '?2',
    text: 'TEXT',
    whole: (sum) => sum,
    join: `CROSS JOIN ledger_entry INDEXED BY ${index} ON`,
  })
}
