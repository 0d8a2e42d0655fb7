/** What was charged in a period, by day and by what it was for. */
import type { ChargeGroup, ChargeQuery, Charges } from '../../../../../domain/credits/charges.ts'
import { type ChargeRow, chargesSql, toCharges } from '../../../rows/charge-rows.ts'
import { type Queryable, type Statement, statement } from '../../database/statement.ts'

function toStatement(by: ChargeGroup, isOfOne: boolean): Statement<ChargeRow> {
  const sql = chargesSql(by, {
    edges: `SELECT place - 1 AS place, at AS begins, lead(at) OVER (ORDER BY place) AS ends
      FROM unnest($1::bigint[]) WITH ORDINALITY AS edges (at, place)`,
    account: isOfOne ? '$2' : null,
    limit: isOfOne ? '$3::bigint' : '$2::bigint',
    text: 'text',
    whole: (sum) => `(${sum})::bigint`,
    join: 'JOIN ledger_entry ON',
  })
  return statement(`ledger.charges.${by}.${isOfOne ? 'one' : 'all'}`, sql)
}

function ofEach(isOfOne: boolean): Record<ChargeGroup, Statement<ChargeRow>> {
  const of = (by: ChargeGroup) => toStatement(by, isOfOne)
  return { day: of('day'), model: of('model'), pool: of('pool'), key: of('key'), account: of('account') }
}

const OF_ONE = ofEach(true)
const OF_ALL = ofEach(false)

export async function readCharges(db: Queryable, { accountId, edges, by, limit }: ChargeQuery): Promise<Charges> {
  const places = edges.map((edge) => edge.getTime())
  const values = [places, ...(accountId === null ? [] : [accountId]), ...(by === 'day' ? [] : [limit])]
  return toCharges(await db.all((accountId === null ? OF_ALL : OF_ONE)[by], values))
}
