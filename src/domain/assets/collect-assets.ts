/**
 * Removes what is over: records past their expiry, and bytes that nothing has referenced for a grace period. The grace period
 * protects bytes that are stored and whose record is not yet written. The work is done in bounded portions, so that a large
 * backlog never blocks the store for long.
 */
import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import type { AssetStore } from './asset-store.ts'
import type { BlobListing, BlobStore } from './blob-store.ts'

export const GRACE_MS = 60 * 60 * 1000
const PORTION = 500
// One call removes at most so many portions; the next call goes on.
const MAX_PORTIONS = 200

interface CollectDeps {
  readonly assets: Pick<AssetStore, 'expire' | 'retireBlobs' | 'knownBlobs'>
  readonly blobs: Pick<BlobStore, 'remove'>
  readonly clock: Clock
  readonly log: Log
  readonly graceMs?: number
}

interface Collected {
  readonly expiredAssets: number
  readonly removedBlobs: number
}

type Collect = (options?: { readonly signal?: AbortSignal }) => Promise<Collected>

export function createCollect({ assets, blobs, clock, log, graceMs = GRACE_MS }: CollectDeps): Collect {
  async function expirePortion(): Promise<number> {
    return assets.expire(clock.now(), PORTION)
  }

  async function removePortion(): Promise<number> {
    const cutoff = new Date(clock.now().getTime() - graceMs)
    const hashes = await assets.retireBlobs(cutoff, PORTION)
    for (const hash of hashes) await removeUnknown(hash, { assets, blobs, log })
    return hashes.length
  }

  return async function collect({ signal } = {}) {
    const expiredAssets = await repeat(expirePortion, signal)
    const removedBlobs = await repeat(removePortion, signal)
    if (expiredAssets + removedBlobs > 0) log.info({ expiredAssets, removedBlobs }, 'collected assets')
    return { expiredAssets, removedBlobs }
  }
}

async function repeat(portion: () => Promise<number>, signal: AbortSignal | undefined): Promise<number> {
  let total = 0
  for (let count = 0; count < MAX_PORTIONS && !signal?.aborted; count++) {
    const done = await portion()
    total += done
    if (done < PORTION) break
  }
  return total
}

interface SweepDeps {
  readonly assets: Pick<AssetStore, 'knownBlobs'>
  readonly blobs: Pick<BlobStore, 'remove'> & BlobListing
  readonly log: Log
}

/** Returns how many it removed. */
type SweepOrphans = (options?: { readonly signal?: AbortSignal }) => Promise<number>

/**
 * Removes bytes that no record knows: what a crash between forgetting a blob and removing its bytes leaves behind. Meant to run
 * once after a start; safe at any time, because bytes are announced before they get their name.
 */
export function createSweepOrphans({ assets, blobs, log }: SweepDeps): SweepOrphans {
  return async function sweepOrphans({ signal } = {}) {
    let removed = 0
    let portion: string[] = []
    const sweepPortion = async () => {
      const known = new Set(await assets.knownBlobs(portion))
      for (const hash of portion) {
        if (known.has(hash)) continue
        await removeUnknown(hash, { assets, blobs, log })
        removed++
      }
      portion = []
    }
    for await (const hashes of blobs.list()) {
      if (signal?.aborted) return removed
      portion.push(...hashes)
      if (portion.length >= PORTION) await sweepPortion()
    }
    if (portion.length > 0) await sweepPortion()
    return removed
  }
}

interface RemoveDeps {
  readonly assets: Pick<AssetStore, 'knownBlobs'>
  readonly blobs: Pick<BlobStore, 'remove'>
  readonly log: Log
}

async function removeUnknown(hash: string, { assets, blobs, log }: RemoveDeps): Promise<void> {
  try {
    await blobs.remove(hash, async () => (await assets.knownBlobs([hash])).length > 0)
  } catch (error) {
    // One file that cannot be removed must not keep the others; the sweep after the next start tries it again.
    log.error({ hash, err: error }, 'could not remove stored bytes')
  }
}
