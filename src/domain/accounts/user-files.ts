/**
 * Small files of an account's own, such as settings and saved graphs, under relative paths. A path is only a key in the store,
 * never a path on a disk. Bounded in size, number and sum.
 */
import type { Clock } from '../../../lib/clock.ts'
import { ServiceError } from '../errors.ts'

export interface UserFileInfo {
  readonly path: string
  readonly sizeBytes: number
  readonly createdAt: Date
  readonly modifiedAt: Date
}

interface UserFileLimits {
  readonly maxFiles: number
  readonly maxTotalBytes: number
}

export type PutOutcome =
  | { readonly outcome: 'stored'; readonly file: UserFileInfo }
  | { readonly outcome: 'exists' }
  | { readonly outcome: 'no_room' }

type MoveOutcome = PutOutcome | { readonly outcome: 'not_found' }

export interface PutUserFile {
  readonly path: string
  readonly bytes: Uint8Array
  readonly overwrite: boolean
  readonly now: Date
  readonly limits: UserFileLimits
}

interface MoveUserFile {
  readonly from: string
  readonly to: string
  readonly overwrite: boolean
}

export interface UserFileStore {
  put(accountId: string, file: PutUserFile): Promise<PutOutcome>
  read(accountId: string, path: string): Promise<Uint8Array | null>
  /** Every file of the account, by path. */
  list(accountId: string): Promise<readonly UserFileInfo[]>
  move(accountId: string, move: MoveUserFile): Promise<MoveOutcome>
  /** False when there was none. */
  remove(accountId: string, path: string): Promise<boolean>
}

export interface UserFiles {
  /** Throws `payload_too_large` and `storage_full`. */
  put(accountId: string, path: string, file: { bytes: Uint8Array; overwrite: boolean }): Promise<PutOutcome>
  read(accountId: string, path: string): Promise<Uint8Array | null>
  list(accountId: string): Promise<readonly UserFileInfo[]>
  move(accountId: string, move: MoveUserFile): Promise<MoveOutcome>
  remove(accountId: string, path: string): Promise<boolean>
}

export const USER_FILE_MAX_BYTES = 8 * 1024 * 1024
const LIMITS: UserFileLimits = { maxFiles: 2000, maxTotalBytes: 128 * 1024 * 1024 }
const PATH_MAX_BYTES = 512

export function createUserFiles({ store, clock }: { store: UserFileStore; clock: Clock }): UserFiles {
  return {
    async put(accountId, path, { bytes, overwrite }) {
      if (bytes.byteLength > USER_FILE_MAX_BYTES) {
        throw new ServiceError('payload_too_large', `a file may have at most ${USER_FILE_MAX_BYTES} bytes`)
      }
      return store.put(accountId, { path, bytes, overwrite, now: clock.now(), limits: LIMITS })
    },
    read: (accountId, path) => store.read(accountId, path),
    list: (accountId) => store.list(accountId),
    move: (accountId, move) => store.move(accountId, move),
    remove: (accountId, path) => store.remove(accountId, path),
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are exactly what is refused
const UNSAFE = /[\x00-\x1f\x7f\\]/

/** The path in its canonical spelling; null when it is empty or leads out of its folder. */
export function readUserPath(text: string): string | null {
  if (Buffer.byteLength(text) > PATH_MAX_BYTES || !text.isWellFormed() || UNSAFE.test(text)) return null
  if (text.startsWith('/')) return null
  const segments = text.split('/').filter((segment) => segment !== '' && segment !== '.')
  return segments.length === 0 || segments.includes('..') ? null : segments.join('/')
}
