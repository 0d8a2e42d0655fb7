/** The two channels that the stores talk through, and the same with an audit line bound to every write. */
import type { AuditEntry } from '../../../../domain/accounts/audit.ts'
import type { ReadOperations } from '../operations/read-operations.ts'
import type { WriteOperations } from '../operations/write-operations.ts'
import type { Channel } from '../threads/channel.ts'

export interface StoreChannels {
  readonly write: Channel<WriteOperations>
  readonly read: Channel<ReadOperations>
}

/** Channels whose every write takes a line of the audit log along, in the same transaction. */
export function toAuditedChannels({ write, read }: StoreChannels, entry: AuditEntry): StoreChannels {
  return {
    read,
    write: {
      stats: () => write.stats(),
      close: () => write.close(),
      failed: write.failed,
      call<Name extends keyof WriteOperations & string>(name: Name, input: unknown, weight?: number) {
        // What the inner operation answers is what comes back.
        return write.call('audited', { name, input, entry }, weight) as Promise<ReturnType<WriteOperations[Name]>>
      },
    },
  }
}
