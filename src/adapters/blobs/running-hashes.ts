/**
 * Hashes of bytes that come in pieces, as far as this process has seen all of them. The state of a hash cannot be stored, so one that
 * is not here, or not where the bytes are, is made at the end by reading them once.
 */
import { BoundedMap } from '../../../lib/bounded-map.ts'
import type { Blake3, Blake3Hasher } from '../../../lib/files/blake3.ts'

interface RunningHashes {
  /** The hasher for the bytes from here on; null: this process has not seen those before. It is taken out until it is put back. */
  take(place: string, atBytes: number): Blake3Hasher | null
  putBack(place: string, hasher: Blake3Hasher | null, atBytes: number): void
  /** The hash of the whole; null: this process has not seen all of it. */
  finish(place: string, sizeBytes: number): string | null
}

// Two kilobytes each. One that is forgotten costs a read of its bytes.
const MAX_KEPT = 1_000

export function createRunningHashes(blake3: Blake3): RunningHashes {
  const kept = new BoundedMap<string, { readonly hasher: Blake3Hasher; readonly atBytes: number }>(MAX_KEPT)

  function take(place: string, atBytes: number): Blake3Hasher | null {
    const known = kept.get(place)
    kept.delete(place)
    if (known?.atBytes === atBytes) return known.hasher
    return atBytes === 0 ? blake3.createHasher() : null
  }

  return {
    take,
    putBack(place, hasher, atBytes) {
      if (hasher !== null) kept.set(place, { hasher, atBytes })
    },
    finish: (place, sizeBytes) => take(place, sizeBytes)?.digest() ?? null,
  }
}
