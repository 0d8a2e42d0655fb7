/**
 * How much more an account may keep. To what the store counts come the whole sizes of uploads that can be continued, the bytes that
 * are being received, so that many uploads at once do not pass a bound that each of them alone keeps, and the bytes that no record
 * counts but that are on the disk until they are collected.
 */
import type { Clock } from '../../../lib/clock.ts'
import { ServiceError } from '../errors.ts'
import type { AssetStore } from './asset-store.ts'
import type { PendingBlob } from './blob-store.ts'
import { GRACE_MS } from './collect-assets.ts'
import type { UploadStore } from './resumable/upload-store.ts'

export interface StorageQuota {
  /** In bytes; infinite where nothing is bounded. */
  leftFor(accountId: string): Promise<number>
  /** Throws payload_too_large unless so many more bytes may come. Returns how many may come at most. */
  mustHaveRoom(accountId: string, bytes: number): Promise<number>
  /**
   * Receives as many bytes as the account may keep, and no more than `maxBytes`. They count until the admission ends: when a
   * record counts them, or when they are discarded. Throws payload_too_large.
   */
  admit(
    accountId: string,
    bounds: AdmissionBounds,
    receive: (maxBytes: number) => Promise<PendingBlob>,
  ): Promise<Admission>
  /** Bytes were stored for this account that no record counts. */
  noteUnrecorded(accountId: string, bytes: number): void
}

interface AdmissionBounds {
  readonly maxBytes: number
  /** What was set aside for these very bytes before; left out: nothing. */
  readonly reservedBytes?: number
}

export interface Admission {
  readonly pending: PendingBlob
  /** Twice is harmless. */
  end(): void
  /** Ends it and throws the bytes away. */
  discard(): Promise<void>
}

interface StorageQuotaDeps {
  readonly assets: Pick<AssetStore, 'storedBytes'>
  readonly uploads: Pick<UploadStore, 'openBytes'>
  readonly clock: Clock
  /** null: no bound. */
  limitOf(accountId: string): number | null
}

interface Unrecorded {
  readonly bytes: number
  readonly until: number
}

export function createStorageQuota({ assets, uploads, clock, limitOf }: StorageQuotaDeps): StorageQuota {
  const incoming = new Map<string, number>()
  const unrecorded = new Map<string, Unrecorded[]>()

  function count(accountId: string, bytes: number): void {
    const sum = (incoming.get(accountId) ?? 0) + bytes
    if (sum > 0) incoming.set(accountId, sum)
    else incoming.delete(accountId)
  }

  function unrecordedBytes(accountId: string): number {
    const now = clock.now().getTime()
    const uncollected = (unrecorded.get(accountId) ?? []).filter(({ until }) => until > now)
    if (uncollected.length > 0) unrecorded.set(accountId, uncollected)
    else unrecorded.delete(accountId)
    return uncollected.reduce((sum, { bytes }) => sum + bytes, 0)
  }

  async function leftFor(accountId: string): Promise<number> {
    const limit = limitOf(accountId)
    if (limit === null) return Number.POSITIVE_INFINITY
    const [stored, open] = await Promise.all([assets.storedBytes(accountId), uploads.openBytes(accountId)])
    return limit - stored - open - (incoming.get(accountId) ?? 0) - unrecordedBytes(accountId)
  }

  return {
    leftFor,
    async mustHaveRoom(accountId, bytes) {
      const left = await leftFor(accountId)
      if (bytes > left) throw noRoom(limitOf(accountId))
      return left
    },
    async admit(accountId, { maxBytes, reservedBytes = 0 }, receive) {
      const left = (await leftFor(accountId)) + reservedBytes
      if (left <= 0) throw noRoom(limitOf(accountId))
      const pending = await receive(Math.min(maxBytes, left)).catch((error: unknown) => {
        throw left < maxBytes && isTooLarge(error) ? noRoom(limitOf(accountId), error) : error
      })
      const { sizeBytes } = pending
      // Other uploads may have arrived meanwhile.
      if (sizeBytes > (await leftFor(accountId)) + reservedBytes) {
        await pending.discard()
        throw noRoom(limitOf(accountId))
      }
      count(accountId, sizeBytes)
      let isOver = false
      const end = () => {
        if (!isOver) count(accountId, -sizeBytes)
        isOver = true
      }
      return {
        pending,
        end,
        discard() {
          end()
          return pending.discard()
        },
      }
    },
    noteUnrecorded(accountId, bytes) {
      if (limitOf(accountId) === null) return
      const entry = { bytes, until: clock.now().getTime() + GRACE_MS }
      unrecorded.set(accountId, [...(unrecorded.get(accountId) ?? []), entry])
    },
  }
}

function isTooLarge(error: unknown): boolean {
  return error instanceof ServiceError && error.refusal === 'payload_too_large'
}

const STORAGE_QUOTA = 'storage_quota'

/** The account is at its bound, not the disk. */
function noRoom(limitBytes: number | null, cause?: unknown): ServiceError {
  return new ServiceError(
    'payload_too_large',
    `the account may keep ${limitBytes ?? 0} bytes, and there is not enough room left for this; delete assets, or wait until jobs and their outputs expire`,
    { details: { reason: STORAGE_QUOTA, maxStorageBytes: limitBytes }, cause },
  )
}
