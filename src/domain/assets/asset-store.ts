import type { KeyClaim, KeyHolder } from '../idempotency/idempotency-key.ts'
import type { Asset } from './asset.ts'

export interface MintRequest {
  /** The id to use if a new record is made. */
  readonly asset: Asset
  readonly keyClaim: KeyClaim | null
  /** from-hash: refuse unless the account already holds a record over this hash. */
  readonly mustOwnHash: boolean
}

/**
 * Same account, hash, file path and tags give the SAME record (its life is extended, never shortened); anything else a new one.
 * `newToAccount` is false when the account already had a record over these bytes: other accounts' bytes must not show.
 */
export type MintOutcome =
  | { readonly outcome: 'minted'; readonly asset: Asset; readonly newToAccount: boolean }
  | { readonly outcome: 'existing'; readonly asset: Asset }
  | { readonly outcome: 'hash_unknown' }
  /** The id was promised before, and there is another record under it by now. */
  | { readonly outcome: 'id_taken' }
  | { readonly outcome: 'key_reused'; readonly holder: KeyHolder }

type RemoveOutcome = 'removed' | 'not_found' | 'in_use'

/** Where a record comes from. A job's output never stands in for an upload of the same name, nor the other way round. */
export type AssetOrigin = 'upload' | 'output'

export interface PathQuery {
  readonly filePaths: readonly string[]
  readonly origin: AssetOrigin
  readonly now: Date
}

export interface FolderQuery {
  /** Without a slash at the end. */
  readonly folders: readonly string[]
  readonly limit: number
  readonly now: Date
}

interface SubfolderQuery {
  readonly filePath: string
  readonly subfolder: string
  readonly now: Date
}

interface ListFilesQuery {
  readonly origin: AssetOrigin
  /** Paths that begin so; '' for those outside of `temp/`, `output/` and `models/`. */
  readonly prefix: string
  readonly limit: number
  readonly now: Date
}

export interface AssetStore {
  /**
   * Announces that bytes of this hash are about to be stored, before they get their final name: the blob counts as
   * collectable from `now` on, so a crash before `mint` leaves nothing behind for good.
   */
  announceBlob(hash: string, sizeBytes: number, now: Date): Promise<void>
  mint(request: MintRequest): Promise<MintOutcome>
  find(accountId: string, assetId: string, now: Date): Promise<Asset | null>
  findMany(accountId: string, assetIds: readonly string[], now: Date): Promise<Asset[]>
  /** The newest upload, or the newest output, of the account for each of these file paths; the one minted last comes first. */
  findNewestByPath(accountId: string, query: PathQuery): Promise<Asset[]>
  /** The newest upload under every path of this account that lies directly in one of these folders, at most `limit`. */
  findInFolders(accountId: string, query: FolderQuery): Promise<Asset[]>
  /** The newest output of this path that an engine had put into this subfolder ('' for none). */
  findOutputIn(accountId: string, query: SubfolderQuery): Promise<Asset | null>
  /** The newest record of each path of one origin, the newest first. */
  listFiles(accountId: string, query: ListFilesQuery): Promise<Asset[]>
  /** The newest record of the account for each of these hashes. */
  findNewestByHash(accountId: string, hashes: readonly string[], now: Date): Promise<Asset[]>
  /** Removes the record only. `in_use` while it is an output of a job that is still retained. */
  remove(accountId: string, assetId: string, now: Date): Promise<RemoveOutcome>
  /** Removes records past their life; returns how many. At most `limit` per call. */
  expire(now: Date, limit: number): Promise<number>
  /** Forgets blobs that nothing has referenced since before `cutoff` and returns their hashes; the caller then removes the bytes. */
  retireBlobs(cutoff: Date, limit: number): Promise<string[]>
  /** What the account keeps: its assets, the same bytes once, and answers of models. */
  storedBytes(accountId: string): Promise<number>
  /** Which of these hashes are known, that is announced or referenced. */
  knownBlobs(hashes: readonly string[]): Promise<string[]>
}
