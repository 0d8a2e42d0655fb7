/** What both stores are asked about asset records, always within one account. Times are in milliseconds. */
export interface AssetsQuery {
  readonly accountId: string
  /** Ids, file paths or hashes. */
  readonly wanted: readonly string[]
  readonly now: number
}

export interface SubfolderQuery {
  readonly accountId: string
  readonly filePath: string
  readonly subfolder: string
  readonly now: number
}

export interface FilesQuery {
  readonly accountId: string
  readonly origin: 'upload' | 'output'
  /** Paths that begin so; '' for those outside of the folders `temp`, `output` and `models`. */
  readonly prefix: string
  readonly limit: number
  readonly now: number
}

export interface FoldersQuery {
  readonly accountId: string
  readonly folders: readonly string[]
  readonly limit: number
  readonly now: number
}

/** Bounds a walk over one caller's paths. */
export const WALKED_PATHS = 20_000
