/**
 * A new reference to bytes that the account already has. Bytes of other accounts look exactly like bytes that nobody has.
 */
import type { Clock } from '../../../../lib/clock.ts'
import type { NewId } from '../../../../lib/ids.ts'
import { ServiceError } from '../../errors.ts'
import type { Asset } from '../asset.ts'
import type { AssetStore } from '../asset-store.ts'
import type { BlobStore } from '../blob-store.ts'
import type { ModelPlacement } from '../weights/model-placement.ts'
import { readExpiry, readTags } from './asset-fields.ts'
import { type ModelPath, readFilePath } from './file-path.ts'

interface FromHashRequest {
  readonly accountId: string
  /** Plain lower-case hex. */
  readonly hash: string
  readonly filePath: string | null
  readonly tags: readonly string[]
  readonly expiresInSeconds: number | null
}

interface AssetReference {
  readonly asset: Asset
  /** False when the identical reference existed. The bytes are never new. */
  readonly isNewReference: boolean
}

/** Throws ServiceError. */
export type AssetFromHash = (request: FromHashRequest) => Promise<AssetReference>

interface FromHashDeps {
  readonly assets: AssetStore
  readonly blobs: BlobStore
  readonly placement: ModelPlacement
  readonly clock: Clock
  readonly newId: NewId
  readonly retentionMs: number | null
}

export function createAssetFromHash(deps: FromHashDeps): AssetFromHash {
  const { assets, blobs, placement, clock, newId, retentionMs } = deps

  async function findSource(accountId: string, hash: string): Promise<Asset> {
    const [known] = await assets.findNewestByHash(accountId, [hash], clock.now())
    // Lost bytes count as unknown: the caller then sends them again, which heals the loss.
    if (known === undefined || (await blobs.stat(hash)) === null) throw unknownHash()
    return known
  }

  async function place(model: ModelPath | null, source: Asset): Promise<(() => Promise<void>) | null> {
    if (model === null) return null
    await placement.admit(model)
    await placement.checkStored(source)
    return placement.place(model, source)
  }

  return async function assetFromHash({ accountId, hash, ...request }) {
    const filePath = request.filePath === null ? null : readFilePath(request.filePath)
    const tags = readTags(request.tags)
    const now = clock.now()
    const expiresAt = readExpiry(request.expiresInSeconds, { now, defaultMs: retentionMs })
    const source = await findSource(accountId, hash)
    const undo = await place(filePath?.model ?? null, source)
    const { sizeBytes, contentType } = source
    const asset = { id: newId(), accountId, hash, sizeBytes, contentType, filePath: filePath?.path ?? null, tags }
    const outcome = await assets.mint({
      asset: { ...asset, createdAt: now, expiresAt, jobId: null },
      keyClaim: null,
      mustOwnHash: true,
    })
    if (outcome.outcome === 'minted' || outcome.outcome === 'existing') {
      return { asset: outcome.asset, isNewReference: outcome.outcome === 'minted' }
    }
    await undo?.()
    throw unknownHash()
  }
}

interface HasBlobDeps {
  readonly assets: AssetStore
  readonly blobs: BlobStore
  readonly clock: Clock
}

/** Would `assetFromHash` find these bytes? */
export type HasBlob = (accountId: string, hash: string) => Promise<boolean>

export function createHasBlob({ assets, blobs, clock }: HasBlobDeps): HasBlob {
  return async function hasBlob(accountId, hash) {
    const known = await assets.findNewestByHash(accountId, [hash], clock.now())
    return known.length > 0 && (await blobs.stat(hash)) !== null
  }
}

function unknownHash(): ServiceError {
  return new ServiceError('blob_not_found', 'there is no content with this hash; upload it')
}
