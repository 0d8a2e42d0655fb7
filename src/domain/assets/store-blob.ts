/**
 * Puts bytes away for good, before any record points at them: received and hashed, announced, then given their final name.
 * Announced bytes that no record takes up are collected after the grace period, so a crash in between leaves nothing.
 */
import type { Clock } from '../../../lib/clock.ts'
import type { AssetStore } from './asset-store.ts'
import type { BlobStore, PendingBlob, PutOptions } from './blob-store.ts'

export interface StoreBlobDeps {
  readonly assets: Pick<AssetStore, 'announceBlob'>
  readonly blobs: BlobStore
  readonly clock: Clock
}

export interface StoredBlob {
  readonly hash: string
  readonly sizeBytes: number
}

export type StoreBlob = (source: AsyncIterable<Uint8Array>, options: PutOptions) => Promise<StoredBlob>

export function createStoreBlob(deps: StoreBlobDeps): StoreBlob {
  return async function storeBlob(source, options) {
    const pending = await deps.blobs.receive(source, options)
    await settleBlob(pending, deps)
    return { hash: pending.hash, sizeBytes: pending.sizeBytes }
  }
}

/** The second half, for callers that look at the hash in between. */
export async function settleBlob(pending: PendingBlob, { assets, clock }: Omit<StoreBlobDeps, 'blobs'>): Promise<void> {
  try {
    await assets.announceBlob(pending.hash, pending.sizeBytes, clock.now())
  } catch (error) {
    await pending.discard()
    throw error
  }
  await pending.keep()
}
