/** Statements in the words of the wire, for their accounts and for operators, as JSON or as a table. Pure. */
import { type Micros, writeUsd } from '../../../lib/text/usd.ts'
import type { Statement } from '../../domain/credits/statement.ts'

export function toStatementView(statement: Statement) {
  const { accountId, month, from, to, isFinal, opening, granted, revoked, charged, refunded, closing } = statement
  const { held, holds, count, lines, rest } = statement
  const toSums = (sum: Pick<Statement, 'charged' | 'refunded' | 'count'>) => ({
    ...{ count: sum.count, charged_usd: writeUsd(sum.charged), refunded_usd: writeUsd(sum.refunded) },
  })
  return {
    ...{ account_id: accountId, month, from: from.toISOString(), to: to.toISOString(), time_zone: 'UTC' },
    ...{
      final: isFinal,
      opening_usd: writeUsd(opening),
      added_usd: writeUsd(granted),
      taken_back_usd: writeUsd(revoked),
    },
    ...toSums({ charged, refunded, count }),
    ...{ closing_usd: writeUsd(closing), held_usd: writeUsd(held), holds },
    lines: lines.map(({ work, model, pool, endpoint, ...sum }) => ({
      kind: work,
      model,
      pool,
      endpoint,
      ...toSums(sum),
    })),
    rest: rest === null ? null : toSums(rest),
  }
}

const COLUMNS = ['item', 'kind', 'model', 'pool', 'endpoint', 'count', 'usd'] as const

/**
 * The amounts between the first and the last balance add up to the difference of the two. No value has a comma or a quote in it, or
 * begins as a formula would.
 */
export function toStatementCsv({ opening, granted, revoked, closing, held, holds, lines, rest }: Statement): string {
  const row = (item: string, micros: Micros, of: readonly (string | number | null)[] = []) =>
    [item, ...COLUMNS.slice(1, -1).map((_, index) => of[index] ?? ''), writeUsd(micros)].join(',')
  const every = [
    ...lines,
    ...(rest === null ? [] : [{ work: 'rest', model: null, pool: null, endpoint: null, ...rest }]),
  ]
  const rows = [
    COLUMNS.join(','),
    row('opening balance', opening),
    row('credit added', granted),
    row('credit taken back', 0 - revoked),
    ...every.map(({ work, model, pool, endpoint, charged, count }) =>
      row('charges', 0 - charged, [work, model, pool, endpoint, count]),
    ),
    ...every
      .filter(({ refunded }) => refunded !== 0)
      .map(({ work, model, pool, endpoint, refunded }) => row('refunds', refunded, [work, model, pool, endpoint])),
    row('closing balance', closing),
    row('held of it', held, [null, null, null, null, holds]),
  ]
  return `${rows.join('\r\n')}\r\n`
}
