/** Builds the operations on assets over one store and one blob store. */
import { type Clock, systemTicker } from '../../lib/clock.ts'
import { newUuidV4 } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import type { Sealer } from '../../lib/sealer.ts'
import { openPictures as openSharpPictures } from '../adapters/pictures/sharp.ts'
import type { AssetsConfig } from '../config/blocks/assets-config.ts'
import { forAccount, type PerAccount } from '../domain/accounts/limits/tiers.ts'
import { createFindAsset, createOpenContent, createRemoveAsset } from '../domain/assets/asset-content.ts'
import { createStoreBlob, HELD_MS, toLaterClock } from '../domain/assets/blob-store.ts'
import { createCollect, createSweepOrphans } from '../domain/assets/collect-assets.ts'
import { createAssetFromHash, createHasBlob } from '../domain/assets/create/asset-from-hash.ts'
import { createAssetFromPath } from '../domain/assets/create/asset-from-path.ts'
import { createDirectUploadActions } from '../domain/assets/create/direct-upload.ts'
import { createUploadAsset } from '../domain/assets/create/upload-asset.ts'
import { createAdmitFields } from '../domain/assets/create/upload-fields.ts'
import { createUploadPolicy } from '../domain/assets/create/upload-policy.ts'
import { createTakeGivenFiles, type FetchInput } from '../domain/assets/given-files.ts'
import { type AddToLibrary, createAddToLibrary } from '../domain/assets/library/add-to-library.ts'
import { createFileImports, type FileImports } from '../domain/assets/library/import-files.ts'
import { createLibrary, type Library } from '../domain/assets/library/library.ts'
import type { InstalledWeights } from '../domain/assets/library/library-entry.ts'
import { createNamedFiles } from '../domain/assets/named-files.ts'
import type { Pictures } from '../domain/assets/pictures.ts'
import { createFinishUpload } from '../domain/assets/resumable/finish-upload.ts'
import {
  createResumableUploads,
  createSweepUploads,
  type ResumableUploads,
} from '../domain/assets/resumable/resumable-uploads.ts'
import { createUploadLeases } from '../domain/assets/resumable/upload-leases.ts'
import { createStorageQuota } from '../domain/assets/storage-quota.ts'
import { createModelPlacement } from '../domain/assets/weights/model-placement.ts'
import { DEFAULT_POOL } from '../domain/deployments/deployment.ts'
import { createTakeFiles } from '../domain/endpoints/input-files.ts'
import type { EngineDirectory } from '../domain/engine/directory/engine-directory.ts'
import type { ListedWeight } from '../domain/engine/weights/weight-files.ts'
import type { Store } from '../domain/store.ts'
import type { OpenedBlobs } from './storage/open-blobs.ts'

interface AssetParts {
  readonly store: Store
  readonly opened: OpenedBlobs
  readonly maxUploadBytes: PerAccount
  /** How much an account may store; null: no limit. */
  readonly storageLimitOf: (accountId: string) => number | null
  /** null: nothing can be sealed, so nothing goes to the storage directly. */
  readonly sealer: Sealer | null
  readonly fetchInput: FetchInput
  /** What engines of the common pool have is shown in libraries. */
  readonly directory: Pick<EngineDirectory, 'weights'>
  readonly clock: Clock
  readonly log: Log
}

export type AssetActions = ReturnType<typeof createAssetActions>

export function createAssetActions(config: AssetsConfig, parts: AssetParts) {
  const { store, opened, maxUploadBytes, sealer, fetchInput, clock, log } = parts
  const { blobs, modelFiles } = opened
  const { assets, keys } = store
  const quota = createStorageQuota({ assets, uploads: store.uploads, clock, limitOf: parts.storageLimitOf })
  const shared = {
    assets,
    blobs,
    clock,
    newId: newUuidV4,
    placement: createModelPlacement({ modelFiles, blobs }),
    retentionMs: config.retentionMs,
  }
  const uploads = createUploadPolicy({ ...shared, quota, maxBytes: maxUploadBytes })
  const uploadAsset = createUploadAsset({ ...shared, uploads, keys })
  const takeGivenFiles = createTakeGivenFiles({ ...shared, uploads, quota, fetchInput, ticker: systemTicker })
  const { directUploads } = blobs
  const assetFromHash = createAssetFromHash(shared)
  const library = openLibrary({ ...parts, uploadAsset, assetFromHash, admitFields: createAdmitFields(shared) })
  return {
    library,
    quota,
    uploadAsset,
    takeGivenFiles,
    /** Those of a call to an endpoint. */
    takeFiles: createTakeFiles({ ...shared, takeGivenFiles }),
    /** null: uploads come through this process. */
    directUploads:
      directUploads === undefined || sealer === null
        ? null
        : createDirectUploadActions({ ...shared, directUploads, sealer, uploadAsset, quota, maxBytes: maxUploadBytes }),
    resumable: createResumable(store, { ...shared, uploadAsset, quota, maxBytes: maxUploadBytes }),
    sweepUploads: createSweepUploads({ ...shared, store: store.uploads, partials: blobs.partials }),
    assetFromPath: createAssetFromPath({ uploadAsset, hostFiles: opened.hostFiles }),
    assetFromHash,
    hasBlob: createHasBlob(shared),
    findAsset: createFindAsset(shared),
    openContent: createOpenContent(shared),
    removeAsset: createRemoveAsset(shared),
    storeBlob: createStoreBlob(shared),
    storeHeld: createStoreBlob({ ...shared, clock: toLaterClock(shared.clock, HELD_MS) }),
    namedFiles: createNamedFiles({ ...shared, uploads }),
    collect: createCollect({ ...shared, log, graceMs: config.blobGraceMs }),
    sweepOrphans: createSweepOrphans({ ...shared, log }),
    [Symbol.asyncDispose]: () => library.imports[Symbol.asyncDispose](),
  }
}

interface OpenedLibrary {
  readonly library: Library
  readonly add: AddToLibrary
  readonly imports: FileImports
}

type LibraryDeps = Pick<AssetParts, 'store' | 'fetchInput' | 'maxUploadBytes' | 'directory' | 'clock' | 'log'> &
  Pick<Parameters<typeof createAddToLibrary>[0], 'uploadAsset' | 'assetFromHash' | 'admitFields'>

function openLibrary({ store, directory, maxUploadBytes, ...deps }: LibraryDeps): OpenedLibrary {
  const { assets } = store
  const installed = () => toInstalled(directory.weights(DEFAULT_POOL))
  const library = createLibrary({ ...deps, store: store.library, assets, installed })
  const add = createAddToLibrary({ ...deps, library, assets })
  const imports = createFileImports({
    ...{ ...deps, store: store.imports, library, add, newId: newUuidV4, ticker: systemTicker },
    maxBytesOf: (accountId) => forAccount(maxUploadBytes, accountId),
  })
  return { library, add, imports }
}

/** Each file once, whichever engines have it. */
function toInstalled(weights: readonly ListedWeight[]): readonly InstalledWeights[] {
  const files = new Map<string, InstalledWeights>()
  for (const { folder, name, sizeBytes } of weights)
    if (folder !== null && !files.has(`${folder}/${name}`)) files.set(`${folder}/${name}`, { folder, name, sizeBytes })
  return [...files.values()]
}

type ResumableParts = Omit<Parameters<typeof createFinishUpload>[0], 'store'> &
  Omit<Parameters<typeof createResumableUploads>[0], 'store' | 'partials' | 'leases' | 'finish' | 'admitFields'> &
  Parameters<typeof createAdmitFields>[0]

function createResumable(store: Pick<Store, 'uploads' | 'isExclusive'>, parts: ResumableParts): ResumableUploads {
  return createResumableUploads({
    ...parts,
    store: store.uploads,
    partials: parts.blobs.partials,
    leases: createUploadLeases({ ...parts, store: store.uploads, isAlone: store.isExclusive }),
    admitFields: createAdmitFields(parts),
    finish: createFinishUpload({ ...parts, store: store.uploads }),
  })
}

// 16384 by 4096, or 8192 by 8192: as much as the hosted service takes.
const MAX_PICTURE_PIXELS = 67_108_864

/** Operations on stored pictures that clients ask for outside of workflows. */
export function openPictures(): Pictures {
  return openSharpPictures({ maxPixels: MAX_PICTURE_PIXELS })
}

/** Removes bytes that a crash left without a record. Runs once per start, in the background. */
export function sweepLeftOverBytes({ sweepOrphans }: Pick<AssetActions, 'sweepOrphans'>, log: Log): AsyncDisposable {
  const ending = new AbortController()
  const swept = sweep()

  async function sweep(): Promise<void> {
    try {
      const removed = await sweepOrphans({ signal: ending.signal })
      if (removed > 0) log.info({ removed }, 'removed bytes that a crash had left behind')
    } catch (error) {
      log.warn({ err: error }, 'left-over bytes could not be swept; the next start tries again')
    }
  }

  return {
    async [Symbol.asyncDispose]() {
      ending.abort()
      await swept
    },
  }
}
