/** The asset store on Postgres. */
import type { AssetOrigin, AssetStore } from '../../../../domain/assets/asset-store.ts'
import type { AssetsQuery } from '../../search/asset-queries.ts'
import { createGather } from '../database/gather.ts'
import { readStoredBytes } from '../operations/assets/account-storage.ts'
import { toAsset } from '../operations/assets/asset-row.ts'
import { findKnownBlobs, offerBlobs, retireBlobs } from '../operations/assets/blob-references.ts'
import {
  type FindAssets,
  findAssets,
  findInFolders,
  findNewestByHash,
  findOutputIn,
  findOutputsByPath,
  findUploadsByPath,
  listFiles,
} from '../operations/assets/find-assets.ts'
import { mintAsset } from '../operations/assets/mint-asset.ts'
import { expireAssets, removeAsset } from '../operations/assets/remove-assets.ts'
import type { StoreParts } from './store-parts.ts'

const FIND_BY_PATH: Readonly<Record<AssetOrigin, FindAssets>> = { upload: findUploadsByPath, output: findOutputsByPath }
// Rows of one transaction of a sweep: few enough that its locks hold up no other transaction.
const SLICE = 500
const ANNOUNCED_AT_ONCE = 64

export function createAssetStore({ durable, read, chore }: StoreParts): AssetStore {
  // Durable: whoever stores bytes outlives a crash of the server, and a sweep must not take them before their record is written.
  const announce = createGather({
    run: async (offered: readonly (Parameters<typeof offerBlobs>[1][number] & { readonly now: number })[]) => {
      await offerBlobs(durable, offered, Math.max(...offered.map(({ now }) => now)))
      return offered
    },
    onBatch: durable.noteBatch,
    maxItems: ANNOUNCED_AT_ONCE,
    maxRunning: 2,
  })
  async function findAll(find: FindAssets, query: AssetsQuery) {
    return query.wanted.length === 0 ? [] : (await find(read, query)).map(toAsset)
  }
  return {
    async announceBlob(hash, sizeBytes, now) {
      await announce({ hash, sizeBytes, now: now.getTime() })
    },
    mint: (request) => durable.transaction((tx) => mintAsset(tx, request)),
    async find(accountId, assetId, now) {
      const [asset] = await findAll(findAssets, { accountId, wanted: [assetId], now: now.getTime() })
      return asset ?? null
    },
    findMany: (accountId, wanted, now) => findAll(findAssets, { accountId, wanted, now: now.getTime() }),
    findNewestByPath: (accountId, { filePaths, origin, now }) =>
      findAll(FIND_BY_PATH[origin], { accountId, wanted: filePaths, now: now.getTime() }),
    async findInFolders(accountId, { folders, limit, now }) {
      const rows = await findInFolders(read, { accountId, folders, limit, now: now.getTime() })
      return rows.map(toAsset)
    },
    async findOutputIn(accountId, { filePath, subfolder, now }) {
      const row = await findOutputIn(read, { accountId, filePath, subfolder, now: now.getTime() })
      return row === null ? null : toAsset(row)
    },
    async listFiles(accountId, { now, ...query }) {
      return (await listFiles(read, { accountId, ...query, now: now.getTime() })).map(toAsset)
    },
    findNewestByHash: (accountId, wanted, now) => findAll(findNewestByHash, { accountId, wanted, now: now.getTime() }),
    remove: (accountId, assetId, now) =>
      durable.transaction((tx) => removeAsset(tx, { accountId, assetId, now: now.getTime() })),
    async expire(now, limit) {
      let total = 0
      while (total < limit) {
        const slice = Math.min(SLICE, limit - total)
        const removed = await chore.transaction((tx) => expireAssets(tx, now.getTime(), slice))
        total += removed
        if (removed < slice) break
      }
      return total
    },
    async retireBlobs(cutoff, limit) {
      const hashes: string[] = []
      // Candidates that turn out to be in use are many and do not count: the walk ends when none is left or enough were found.
      while (hashes.length < limit) {
        const slice = Math.min(SLICE, limit - hashes.length)
        const { retired, examined } = await chore.transaction((tx) => retireBlobs(tx, cutoff.getTime(), slice))
        hashes.push(...retired)
        if (examined < slice) break
      }
      return hashes
    },
    storedBytes: (accountId) => readStoredBytes(read, accountId),
    knownBlobs: async (hashes) => (hashes.length === 0 ? [] : findKnownBlobs(read, hashes)),
  }
}
