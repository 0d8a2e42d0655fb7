/** What travels between the main thread and a store thread: batches there, answers back. */
import type { StoreOpenReason } from '../../../../domain/store.ts'

// biome-ignore lint/suspicious/noConfusingVoidType: operations without an answer return nothing
export type Operations = Readonly<Record<string, (input: never) => unknown | void>>

export type Batch = readonly [names: readonly string[], inputs: readonly unknown[]]

export interface Failure {
  readonly kind: 'disk_full' | 'damaged' | 'defect'
  readonly message: string
}

/** Failures by the index of their operation; null when there were none. */
export type Answer = readonly [results: readonly unknown[], failures: ReadonlyMap<number, Failure> | null]

/** The first message to a thread: open the database. */
export const OPEN = 'open'

/** The first message of a thread. */
export type Greeting =
  | { readonly opened: true }
  | { readonly opened: false; readonly reason: StoreOpenReason | null; readonly message: string }

/** Sent between answers: the database was damaged, and the writer has repaired it. */
export const REPAIRED = 'repaired'

/** Sent instead of a batch: finish, close the database, end the thread. */
export const CLOSE = null
