/** The asset store on SQLite, as the main thread sees it. */
import type { AssetOrigin, AssetStore } from '../../../../domain/assets/asset-store.ts'
import { readAssetRow } from '../../rows/asset-row.ts'
import type { AssetsQuery } from '../../search/asset-queries.ts'
import { toMintInput, toMintOutcome } from '../operations/assets/mint-asset.ts'
import { createAnnouncedBlobs } from './announced-blobs.ts'
import { inSlices, SLICE, type StoreChannels } from './store-channels.ts'

type FindOperation = 'findAssets' | 'findUploadsByPath' | 'findOutputsByPath' | 'findNewestByHash'

const FIND_BY_PATH: Readonly<Record<AssetOrigin, FindOperation>> = {
  upload: 'findUploadsByPath',
  output: 'findOutputsByPath',
}

export function createAssetStore({ write, read }: StoreChannels): AssetStore {
  const announced = createAnnouncedBlobs((blobs) => write.call('announceUnreferenced', blobs))
  async function findAll(operation: FindOperation, query: AssetsQuery) {
    if (query.wanted.length === 0) return []
    const rows = await read.call(operation, query)
    return rows.map(readAssetRow)
  }
  return {
    announceBlob: (hash, sizeBytes, now) => write.call('announceBlob', { hash, sizeBytes, now: now.getTime() }),
    announceBriefly: (hash, sizeBytes, now) => announced.add({ hash, sizeBytes, now: now.getTime() }),
    async mint(request) {
      return toMintOutcome(await write.call('mint', toMintInput(request)))
    },
    async find(accountId, assetId, now) {
      const [asset] = await findAll('findAssets', { accountId, wanted: [assetId], now: now.getTime() })
      return asset ?? null
    },
    findMany: (accountId, wanted, now) => findAll('findAssets', { accountId, wanted, now: now.getTime() }),
    findNewestByPath: (accountId, { filePaths, origin, now }) =>
      findAll(FIND_BY_PATH[origin], { accountId, wanted: filePaths, now: now.getTime() }),
    async findInFolders(accountId, { folders, limit, now }) {
      const rows = await read.call('findInFolders', { accountId, folders, limit, now: now.getTime() })
      return rows.map(readAssetRow)
    },
    async findOutputIn(accountId, { filePath, subfolder, now }) {
      const row = await read.call('findOutputsIn', { accountId, filePath, subfolder, now: now.getTime() })
      return row === null ? null : readAssetRow(row)
    },
    async listFiles(accountId, { now, ...query }) {
      const rows = await read.call('listFiles', { accountId, ...query, now: now.getTime() })
      return rows.map(readAssetRow)
    },
    findNewestByHash: (accountId, wanted, now) =>
      findAll('findNewestByHash', { accountId, wanted, now: now.getTime() }),
    remove: (accountId, assetId, now) => write.call('removeAsset', { accountId, assetId, now: now.getTime() }),
    expire: (now, limit) =>
      inSlices(limit, (sliceLimit) => write.call('expireAssets', { now: now.getTime(), limit: sliceLimit })),
    async retireBlobs(cutoff, limit) {
      const hashes: string[] = []
      await announced.writeDown(cutoff.getTime())
      // Candidates that turn out to be in use are many and do not count: the walk ends when none is left or enough were found.
      while (hashes.length < limit) {
        const slice = Math.min(SLICE, limit - hashes.length)
        const { retired, examined } = await write.call('retireBlobs', { cutoff: cutoff.getTime(), limit: slice })
        hashes.push(...retired)
        if (examined < slice) break
      }
      return hashes
    },
    storedBytes: (accountId) => read.call('storedBytes', accountId),
    async knownBlobs(hashes) {
      // First: what is handed to the store from here on is known here still.
      const here = new Set(hashes.filter((hash) => announced.has(hash)))
      const asked = hashes.filter((hash) => !here.has(hash))
      const there = new Set(asked.length === 0 ? [] : await read.call('knownBlobs', asked))
      return hashes.filter((hash) => here.has(hash) || there.has(hash))
    },
  }
}
