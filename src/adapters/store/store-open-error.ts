/** Why a data directory cannot be opened. The message is for the operator: it names the directory and what to do. */
export type StoreOpenReason = 'locked' | 'newer_schema' | 'changed_migration' | 'failed_migration' | 'unusable'

export class StoreOpenError extends Error {
  readonly reason: StoreOpenReason

  constructor(reason: StoreOpenReason, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options)
    this.name = 'StoreOpenError'
    this.reason = reason
  }
}
