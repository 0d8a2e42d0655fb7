/** Files of a run as a visitor gets them: their content without what else they carry. */
import { Readable } from 'node:stream'
import { BoundedMap } from '../../../lib/bounded-map.ts'
import { applyPatches, type Patch } from '../../../lib/files/blank-metadata/patches.ts'
import { createSemaphore } from '../../../lib/waiting/semaphore.ts'
import type { AssetContent } from '../../domain/assets/asset-content.ts'
import { findBlanks } from '../../domain/assets/blank-content.ts'
import { ServiceError } from '../../domain/errors.ts'

/** Throws unsupported_media_type. */
export type OpenBlanked = (content: AssetContent) => Promise<AssetContent>

const AT_A_TIME = 4
const MAX_KNOWN = 512
const MAX_KEPT_PATCHES = 1000

export function createOpenBlanked(): OpenBlanked {
  const limit = createSemaphore(AT_A_TIME)
  const known = new BoundedMap<string, readonly Patch[] | null>(MAX_KNOWN)

  async function find({ asset, open }: AssetContent): Promise<readonly Patch[] | null> {
    const id = `${asset.hash} ${asset.contentType}`
    const found = known.get(id)
    if (found !== undefined) return found
    const { contentType, sizeBytes } = asset
    const patches = await limit.run(() => findBlanks({ contentType, sizeBytes, open }))
    if (patches === null || patches.length <= MAX_KEPT_PATCHES) known.set(id, patches)
    return patches
  }

  return async (content) => {
    const { asset, open } = content
    const patches = await find(content)
    if (patches === null)
      throw new ServiceError('unsupported_media_type', 'files of this kind are not handed out on a shared page')
    if (patches.length === 0) return { ...content, signDirect: null }
    return {
      // Other bytes than those that the hash stands for.
      asset: { ...asset, hash: `${asset.hash}-shared` },
      open: async (range) => Readable.from(applyPatches(await open(range), patches, range?.start ?? 0)),
      signDirect: null,
    }
  }
}
