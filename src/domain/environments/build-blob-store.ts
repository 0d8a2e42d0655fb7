/** Records of uploaded packs and models. Their bytes lie with those of the service, by the hash that these have there. */
import type { BlobKind, BuildBlob } from './blob.ts'

export interface StoredBuildBlob extends BuildBlob {
  /** Under which the bytes are stored; null: they are not there yet. */
  readonly hash: string | null
}

/** An object, because an audit line says how it ended. */
type AnnounceOutcome =
  /** `blob.uploadedAt` tells whether the account has the bytes already. */
  | { readonly outcome: 'announced'; readonly blob: StoredBuildBlob }
  | { readonly outcome: 'too_many' }
  | { readonly outcome: 'no_room' }

interface BlobLimits {
  readonly count: number
  readonly bytes: number
}

export interface BuildBlobStore {
  /** The same bytes of the same kind are one blob of the account, whatever they are called. Counts as a use of it. */
  announce(blob: Omit<BuildBlob, 'uploadedAt'>, limits: BlobLimits): Promise<AnnounceOutcome>
  /** Of whichever account: for an address that was signed for it. */
  findById(id: string): Promise<StoredBuildBlob | null>
  find(accountId: string, id: string): Promise<StoredBuildBlob | null>
  /** The bytes are there, under this hash. False: the blob is gone, or had its bytes before. */
  complete(id: string, hash: string, at: Date): Promise<boolean>
  /** Those with bytes, the newest first. */
  list(
    accountId: string,
    query: { readonly kind: BlobKind | null; readonly limit: number },
  ): Promise<readonly StoredBuildBlob[]>
  /** Those with bytes and one of these names. */
  findNamed(accountId: string, kind: BlobKind, filenames: readonly string[]): Promise<readonly StoredBuildBlob[]>
  /** Removes uploads that never came, and blobs that nothing has used since; resolves with how many. */
  removeUnused(query: {
    readonly announcedBefore: Date
    readonly unusedBefore: Date
    readonly now: Date
    readonly limit: number
  }): Promise<number>
}
