/** A writer whose every operation takes its line in the audit log along, in the same transaction. */
import type { AuditEntry } from '../../../../domain/accounts/audit.ts'
import { toAuditFields } from '../operations/accounts/audited-writes.ts'
import type { WriteOperations } from '../operations/write-operations.ts'
import type { StoreChannels } from './store-channels.ts'

/** The same stores can be made over this as over the plain channels. */
export function toAuditedChannels({ write, read }: StoreChannels, entry: AuditEntry): StoreChannels {
  const fields = toAuditFields(entry)
  return {
    read,
    write: {
      stats: () => write.stats(),
      close: () => write.close(),
      failed: write.failed,
      call<Name extends keyof WriteOperations & string>(name: Name, input: unknown, weight?: number) {
        // What the inner operation answers is what comes back.
        return write.call('audited', { name, input, entry: fields }, weight) as Promise<
          ReturnType<WriteOperations[Name]>
        >
      },
    },
  }
}
