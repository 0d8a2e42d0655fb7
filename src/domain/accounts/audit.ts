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

export interface AuditRecord extends AuditEntry {
  /** Order of writing. */
  readonly seq: number
  /** `done`, or why nothing was changed. */
  readonly outcome: string
}

export interface AuditQuery {
  readonly limit: number
  /** `seq` of the last record of the page before. */
  readonly before: number | null
  readonly subject: string | null
}

export interface AuditStore {
  /** Newest first. */
  list(query: AuditQuery): Promise<readonly AuditRecord[]>
}
