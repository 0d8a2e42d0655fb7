import { open } from 'node:fs/promises'
import { openBlake3 } from '../../../lib/files/blake3.ts'

const CHUNK_BYTES = 1024 * 1024

/** BLAKE3 of a file, in hex. Throws what reading throws. */
export async function hashFile(file: string): Promise<string> {
  const blake3 = await openBlake3()
  await using handle = await open(file, 'r')
  const hasher = blake3.createHasher()
  const chunk = Buffer.alloc(CHUNK_BYTES)
  while (true) {
    const { bytesRead } = await handle.read(chunk, 0, chunk.length)
    if (bytesRead === 0) return hasher.digest()
    hasher.update(chunk.subarray(0, bytesRead))
  }
}
