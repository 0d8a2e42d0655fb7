/** Records of uploads that can be continued. Their bytes lie with the blob store; how many there are is asked there. */
import { ServiceError } from '../../errors.ts'
import type { UploadFields } from '../create/upload-fields.ts'

export interface ResumableUpload {
  readonly id: string
  readonly accountId: string
  readonly lengthBytes: number
  readonly fields: UploadFields
  /** What the client said at the beginning, to be told back as it came. */
  readonly metadata: string
  /** What the blob store calls the bytes; null: there will be none. */
  readonly place: string | null
  /** Of the whole, once it is known: from then on the bytes may lie under their final name. */
  readonly hash: string | null
  /** What it has become; null: bytes are missing, or the end is. */
  readonly assetId: string | null
  readonly createdAt: Date
  readonly expiresAt: Date
}

/** The right to write, for one request at a time. */
export interface UploadLease {
  readonly leaseId: string
  readonly now: Date
  readonly until: Date
}

interface OpenBounds {
  /** Unfinished uploads of the account. */
  readonly maxCount: number
  /** What all of them together may come to; null: nothing is bounded. */
  readonly maxBytes: number | null
}

type CreateOutcome = 'created' | 'too_many' | 'no_room'

export interface UploadStore {
  create(upload: ResumableUpload, bounds: OpenBounds): Promise<CreateOutcome>
  find(accountId: string, id: string): Promise<ResumableUpload | null>
  /**
   * Takes the upload for one writer; null: another one has it, or it is gone. `isAlone`: leases of others are those of a process
   * that died.
   */
  hold(id: string, lease: UploadLease & { readonly isAlone: boolean }): Promise<ResumableUpload | null>
  /** False: the lease has lapsed, and somebody else has taken the upload. */
  renew(id: string, lease: UploadLease): Promise<boolean>
  /** Notes the hash under the lease; null: it is forgotten. False: the lease is lost. */
  noteHash(id: string, leaseId: string, hash: string | null): Promise<boolean>
  /** Ends the lease; with an asset, also the upload. */
  release(id: string, leaseId: string, end: { readonly assetId: string | null }): Promise<void>
  /** Forgets the upload, under its lease. */
  remove(id: string, leaseId: string): Promise<void>
  /** Takes uploads that are past their life and that nobody writes to. */
  holdExpired(lease: UploadLease, limit: number): Promise<ResumableUpload[]>
  /** What the unfinished uploads of the account will come to. */
  openBytes(accountId: string): Promise<number>
}

/** More bytes than an upload was begun with, wherever they are noticed. */
export function tooMuch(lengthBytes: number): ServiceError {
  return new ServiceError('payload_too_large', `more bytes came than the ${lengthBytes} that were announced`, {
    details: { max_bytes: lengthBytes },
  })
}
