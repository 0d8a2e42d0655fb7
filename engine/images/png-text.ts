/**
 * Text chunks of a PNG: `tEXt`, right after the header, in the order given. Values are ASCII by construction (JSON with
 * escapes), so the richer chunk types are never needed.
 */

import type { PngChunk } from '../../lib/files/png-chunks.ts'
import type { FileTags } from '../files/file-tags.ts'
import { NodeError } from '../node/node-error.ts'

const MAX_KEY_LENGTH = 79
const PRINTABLE_LATIN1 = /^[\x20-\x7e\xa1-\xff]+$/

export function toTextChunk([key, value]: FileTags[number]): PngChunk {
  if (key.length > MAX_KEY_LENGTH || !PRINTABLE_LATIN1.test(key)) {
    throw new NodeError(
      'ValueError',
      'a key of extra_pnginfo cannot be written into a PNG: use 1 to 79 Latin characters',
    )
  }
  return { type: 'tEXt', body: Buffer.from(`${key}\0${value}`, 'latin1') }
}
