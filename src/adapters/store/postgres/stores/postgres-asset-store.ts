/** The asset store on Postgres: announcements of one moment share a statement. */
import type { AssetStore } from '../../../../domain/assets/asset-store.ts'
import { assetSteps, createAssetStore as createStore } from '../../stores/asset-store.ts'
import type { OfferedBlob } from '../../stores/blob-references.ts'
import { createGather } from '../database/gather.ts'
import { openShared } from '../shared-stores.ts'
import type { StoreParts } from './store-parts.ts'

const ANNOUNCED_AT_ONCE = 64

interface Announced extends OfferedBlob {
  readonly now: Date
}

export function createAssetStore(parts: StoreParts): AssetStore {
  const steps = openShared(assetSteps, parts)
  const announce = createGather({
    run: async (blobs: readonly Announced[]) => {
      await steps.announce(blobs, new Date(Math.max(...blobs.map(({ now }) => now.getTime()))))
      return blobs
    },
    onBatch: parts.durable.noteBatch,
    maxItems: ANNOUNCED_AT_ONCE,
    maxRunning: 2,
  })
  return {
    ...createStore(steps),
    announceBlob: async (hash, sizeBytes, now) => void (await announce({ hash, sizeBytes, now })),
  }
}
