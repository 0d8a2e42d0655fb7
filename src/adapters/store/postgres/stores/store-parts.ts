/** What the stores work with, and how an audit line is bound to whatever one of them writes. */
import type { Clock } from '../../../../../lib/clock.ts'
import type { Log } from '../../../../../lib/log.ts'
import type { AuditEntry } from '../../../../domain/accounts/audit.ts'
import { addAuditLine } from '../../stores/audit-store.ts'
import type { Connected, Connections } from '../database/connections.ts'
import type { Partitions } from '../database/partitions.ts'

export interface StoreParts extends Pick<Connections, 'durable' | 'relaxed' | 'read' | 'chore'> {
  readonly partitions: Partitions
  readonly clock: Clock
  readonly log: Log
}

/**
 * The same parts, whose durable transactions also write the line, before their commit. A store that may be audited writes only in
 * such transactions, and returns from them what the line calls the outcome. None of them runs again after a commit whose answer was
 * lost: there would be two lines.
 */
export function toAuditedParts<Parts extends Pick<StoreParts, 'durable'>>(parts: Parts, entry: AuditEntry): Parts {
  const { durable } = parts
  const audited: Connected = {
    ...durable,
    transaction: (body, options) =>
      durable.transaction(
        async (tx) => {
          const result = await body(tx)
          const { statement, values } = addAuditLine(entry, result)
          await tx.run(statement, values)
          return result
        },
        { ...options, isRepeatable: false },
      ),
  }
  return { ...parts, durable: audited }
}
