export type ImportStatus = 'running' | 'completed' | 'failed' | 'cancelled'

export interface ImportError {
  readonly code: string
  readonly message: string
}

/** A file that the service fetches for an account, now or lately. */
export interface AssetImport {
  readonly id: string
  readonly accountId: string
  readonly url: string
  /** What the file will be called. */
  readonly name: string
  readonly status: ImportStatus
  /** null: its server does not say. */
  readonly bytesTotal: number | null
  readonly bytesDone: number
  /** Once it is complete. */
  readonly assetId: string | null
  readonly error: ImportError | null
  readonly createdAt: Date
  /** Its process writes this every few seconds while it runs. */
  readonly changedAt: Date
  readonly expiresAt: Date
}

export type ImportMove = Pick<AssetImport, 'status' | 'bytesTotal' | 'bytesDone' | 'assetId' | 'error' | 'changedAt'>

interface ImportBounds {
  readonly maxRunning: number
  /** Those that run count as running only if they changed since. */
  readonly aliveSince: Date
}

export interface ImportStore {
  /** False: the account has as many running as it may; also when many begin at once. */
  create(begun: AssetImport, bounds: ImportBounds): Promise<boolean>
  find(accountId: string, id: string): Promise<AssetImport | null>
  /** False: it does not run any more, and stays as it is. */
  move(accountId: string, id: string, move: ImportMove): Promise<boolean>
  /** Forgets those past their life; returns how many. */
  expire(now: Date, limit: number): Promise<number>
}
