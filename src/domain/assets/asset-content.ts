/** Reading a record, its bytes, and removing it. A foreign record looks like one that does not exist. */
import type { Readable } from 'node:stream'
import type { Clock } from '../../../lib/clock.ts'
import { isUuid } from '../../../lib/ids.ts'
import { type Caller, mustHaveScope } from '../accounts/caller.ts'
import { isStoreAway, ServiceError } from '../errors.ts'
import type { Asset } from './asset.ts'
import type { AssetStore } from './asset-store.ts'
import type { BlobStore, ByteRange, DirectAnswer } from './blob-store.ts'

export interface AssetContent {
  readonly asset: Asset
  open(range?: ByteRange): Promise<Readable>
  /** Where whoever holds the address gets the same bytes for a few minutes; null: only here. */
  readonly signDirect: ((answer: DirectAnswer) => Promise<string>) | null
}

export type FindAsset = (accountId: string, assetId: string) => Promise<Asset>
/** Throws `output_unavailable` when the record is there and its bytes are not. */
export type OpenContent = (accountId: string, assetId: string) => Promise<AssetContent>
export type RemoveAsset = (accountId: string, assetId: string) => Promise<void>

/**
 * Whoever may read jobs may read what they made; all else that an account keeps needs `assets:read`. Throws forbidden: without that
 * right, what does not exist looks like what may not be read.
 */
export async function mustRead(caller: Caller, look: () => Promise<Pick<Asset, 'jobId'>>): Promise<void> {
  const { scopes } = caller
  if (scopes === null || scopes.has('assets:read')) return
  if (scopes.has('jobs:read') && (await isOutput(look))) return
  mustHaveScope(caller, 'assets:read')
}

async function isOutput(look: () => Promise<Pick<Asset, 'jobId'>>): Promise<boolean> {
  try {
    return (await look()).jobId !== null
  } catch (error) {
    if (!(error instanceof ServiceError) || isStoreAway(error)) throw error
    return false
  }
}

interface FindAssetDeps {
  readonly assets: Pick<AssetStore, 'find'>
  readonly clock: Clock
}

export function createFindAsset({ assets, clock }: FindAssetDeps): FindAsset {
  return async function findAsset(accountId, assetId) {
    const asset = isUuid(assetId) ? await assets.find(accountId, assetId, clock.now()) : null
    if (asset === null) throw notFound()
    return asset
  }
}

export function createOpenContent(deps: FindAssetDeps & { readonly blobs: BlobStore }): OpenContent {
  const findAsset = createFindAsset(deps)
  return async function openContent(accountId, assetId) {
    const asset = await findAsset(accountId, assetId)
    const found = await deps.blobs.stat(asset.hash)
    // A length that differs from the promised one would break the answer in the middle.
    if (found?.sizeBytes !== asset.sizeBytes) {
      throw new ServiceError(
        'output_unavailable',
        'the bytes of this asset are gone; trying again cannot bring them back',
      )
    }
    const { signDirect } = deps.blobs
    return {
      asset,
      open: (range) => deps.blobs.open(asset.hash, range),
      signDirect: signDirect === undefined ? null : (answer) => signDirect(asset.hash, answer),
    }
  }
}

interface RemoveAssetDeps {
  readonly assets: Pick<AssetStore, 'remove'>
  readonly clock: Clock
}

export function createRemoveAsset({ assets, clock }: RemoveAssetDeps): RemoveAsset {
  return async function removeAsset(accountId, assetId) {
    const outcome = isUuid(assetId) ? await assets.remove(accountId, assetId, clock.now()) : 'not_found'
    if (outcome === 'not_found') throw notFound()
    // The message must not say what depends on it.
    if (outcome === 'in_use') throw new ServiceError('asset_in_use', 'this asset is in use and cannot be deleted now')
  }
}

function notFound(): ServiceError {
  return new ServiceError('not_found', 'there is no asset with this id')
}
