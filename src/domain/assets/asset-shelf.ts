/**
 * An account's files under plain names: one flat shelf per folder, as clients that think in `input`, `output` and `temp` see
 * them. A name on the shelf always means the newest record under it. Folders below that are remembered where an engine made
 * them, tried first, and otherwise ignored.
 */
import type { Readable } from 'node:stream'
import type { Asset } from './asset.ts'
import type { ByteRange } from './blob-store.ts'

export type ShelfFolder = 'input' | 'output' | 'temp'

export interface ShelfPlace {
  readonly folder: ShelfFolder
  readonly name: string
  /** '' for none. */
  readonly subfolder: string
}

export interface ShelfUpload {
  readonly accountId: string
  readonly folder: ShelfFolder
  readonly name: string
  readonly contentType: string
  /** Otherwise another name is found when the bytes differ from what stands there. */
  readonly overwrite: boolean
}

/** Bytes that have come in and wait for a name. Exactly one of the two ends must be called. */
export interface ReceivedFile {
  readonly sizeBytes: number
  /** Under the name that it got in the end. */
  place(upload: ShelfUpload): Promise<Asset>
  discard(): Promise<void>
}

export interface AssetShelf {
  /** Throws `payload_too_large` and `storage_full`. */
  receive(
    source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
    options: { readonly accountId: string; readonly signal?: AbortSignal },
  ): Promise<ReceivedFile>
  find(accountId: string, place: ShelfPlace): Promise<Asset | null>
  /** The newest upload under exactly this path. */
  findUpload(accountId: string, filePath: string): Promise<Asset | null>
  /** The newest record of the account over these bytes. */
  findByHash(accountId: string, hash: string): Promise<Asset | null>
  /** Throws `output_unavailable` when the record is there and its bytes are not. */
  open(asset: Asset, range?: ByteRange): Promise<Readable>
  /** Names in a folder, the newest first, at most `limit`. */
  list(accountId: string, folder: ShelfFolder | `models/${string}`, limit: number): Promise<readonly Asset[]>
}
