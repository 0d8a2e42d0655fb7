/**
 * Who changed what, and when. An entry is written in the transaction of the change itself: neither exists without the other.
 * Details name what was asked for and never hold a secret.
 */
export interface AuditEntry {
  /** Who asked: the holder of the admin token, or a person at the data folder. */
  readonly actor: string
  /** Such as `account.create`. */
  readonly action: string
  /** The id of what was changed. */
  readonly subject: string
  readonly at: Date
  readonly details: Readonly<Record<string, unknown>>
}

interface AuditRecord extends AuditEntry {
  /** Order of writing. */
  readonly seq: number
  /** `done`, or why nothing was changed. */
  readonly outcome: string
}

interface AuditQuery {
  readonly limit: number
  /** `seq` of the last record of the page before. */
  readonly before: number | null
  readonly subject: string | null
}

export interface AuditStore {
  /** Newest first. */
  list(query: AuditQuery): Promise<readonly AuditRecord[]>
  /** A line about a change outside of the store, such as an engine that takes no more jobs. */
  note(entry: AuditEntry): Promise<void>
}

/** What a line says about the end of a change: the outcome that the change names itself; false and null mean that nothing was changed, anything else is success. */
export function toAuditOutcome(result: unknown): string {
  if (result === false || result === null) return 'refused'
  if (typeof result === 'object' && 'outcome' in result && typeof result.outcome === 'string') return result.outcome
  return 'done'
}
