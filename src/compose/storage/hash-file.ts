/** Reads a stored file whole, to compare it with the hash in its name. */
import { createReadStream } from 'node:fs'
import type { Blake3 } from '../../../lib/files/blake3.ts'
import { hasCode } from '../../adapters/blobs/fs/file-ops.ts'

/** null: there is no such file (any more). */
export async function hashFile(path: string, blake3: Blake3): Promise<{ hash: string; bytes: number } | null> {
  const hasher = blake3.createHasher()
  let bytes = 0
  try {
    for await (const chunk of createReadStream(path, { highWaterMark: 1_048_576 })) {
      hasher.update(chunk as Buffer)
      bytes += (chunk as Buffer).length
    }
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null
    throw error
  }
  return { hash: hasher.digest(), bytes }
}
