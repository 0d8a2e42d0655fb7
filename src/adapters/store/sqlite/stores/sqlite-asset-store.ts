/** The asset store on SQLite: blobs that this process alone is about to refer to are announced in its memory. */
import type { AssetStore } from '../../../../domain/assets/asset-store.ts'
import { assetSteps, createAssetStore as createStore } from '../../stores/asset-store.ts'
import { openShared } from '../shared-stores.ts'
import { createAnnouncedBlobs } from './announced-blobs.ts'
import type { StoreChannels } from './store-channels.ts'

export function createAssetStore(channels: StoreChannels): AssetStore {
  const steps = openShared(assetSteps, channels)
  const announced = createAnnouncedBlobs(steps.announceUnreferenced)
  const store = createStore(steps, (hash, sizeBytes, now) => steps.announce([{ hash, sizeBytes }], now))
  return {
    ...store,
    announceBriefly: (hash, sizeBytes, now) => announced.add({ hash, sizeBytes }, now),
    async retireBlobs(cutoff, limit) {
      await announced.writeDown(cutoff)
      return store.retireBlobs(cutoff, limit)
    },
    async knownBlobs(hashes) {
      // First: what is handed to the store from here on is known here still.
      const here = new Set(hashes.filter((hash) => announced.has(hash)))
      const there = new Set(await store.knownBlobs(hashes.filter((hash) => !here.has(hash))))
      return hashes.filter((hash) => here.has(hash) || there.has(hash))
    },
  }
}
