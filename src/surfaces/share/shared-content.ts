/**
 * Files of a run as a visitor gets them: their content without what else they carry. Of a kind whose hidden parts are not known here nothing is
 * handed out, because generators write whole workflows there.
 */
import { Readable } from 'node:stream'
import { BoundedMap } from '../../../lib/bounded-map.ts'
import { findMetadata } from '../../../lib/files/blank-metadata/blank-metadata.ts'
import { applyPatches, type Patch } from '../../../lib/files/blank-metadata/patches.ts'
import { toBareType } from '../../../lib/files/mime.ts'
import { createSemaphore } from '../../../lib/waiting/semaphore.ts'
import type { AssetContent } from '../../domain/assets/asset-content.ts'
import { ServiceError } from '../../domain/errors.ts'

/** Throws unsupported_media_type. */
export type OpenBlanked = (content: AssetContent) => Promise<AssetContent>

const AT_A_TIME = 4
const MAX_KNOWN = 512
const MAX_KEPT_PATCHES = 1000
const TEXTS: ReadonlySet<string> = new Set(['text/plain', 'text/markdown', 'text/csv', 'application/json'])
const MAX_TEXT_BYTES = 4 * 1024 * 1024
// In every graph, whatever its nodes, also in one that stands as a text in another; in what the editor saves.
const GRAPH_MARK = /class_type|last_(?:node|link)_id|widgets_values/

export function createOpenBlanked(): OpenBlanked {
  const limit = createSemaphore(AT_A_TIME)
  const known = new BoundedMap<string, readonly Patch[] | null>(MAX_KNOWN)

  async function find({ asset, open }: AssetContent): Promise<readonly Patch[] | null> {
    const found = known.get(asset.hash)
    if (found !== undefined) return found
    const patches = await limit.run(() =>
      findMetadata(asset.sizeBytes, async (start, length) => readAll(await open({ start, end: start + length - 1 }))),
    )
    if (patches === null || patches.length <= MAX_KEPT_PATCHES) known.set(asset.hash, patches)
    return patches
  }

  return async (content) => {
    const { asset, open } = content
    if (await isPlainText(content)) return { ...content, signDirect: null }
    const patches = await find(content)
    if (patches === null)
      throw new ServiceError('unsupported_media_type', 'files of this kind are not handed out on a shared page')
    return {
      // Other bytes than those that the hash stands for.
      asset: { ...asset, hash: `${asset.hash}-shared` },
      open: async (range) => Readable.from(applyPatches(await open(range), patches, range?.start ?? 0)),
      signDirect: null,
    }
  }
}

async function isPlainText({ asset, open }: AssetContent): Promise<boolean> {
  if (!TEXTS.has(toBareType(asset.contentType)) || asset.sizeBytes > MAX_TEXT_BYTES) return false
  const text = (await readAll(await open())).toString('utf8')
  return !GRAPH_MARK.test(text)
}

async function readAll(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  for await (const piece of source) pieces.push(piece)
  return Buffer.concat(pieces)
}
