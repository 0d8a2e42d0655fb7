/**
 * Bytes that this process is about to refer to, in memory: nearly all of them are referred to a moment later, and then a row about them
 * would have been written in vain. Those that have waited for long are handed to the store, which writes down what nothing refers to.
 * A crash forgets them; the sweep after the next start finds bytes that nobody knows.
 */
import type { OfferedBlob } from '../../stores/blob-references.ts'

interface AnnouncedBlobs {
  add(blob: OfferedBlob, now: Date): void
  has(hash: string): boolean
  /** Hands over what was announced before. */
  writeDown(before: Date): Promise<void>
}

// Each is a few hundred bytes of memory.
const MAX_ANNOUNCED = 2000
const AT_ONCE = 500

interface Announced extends OfferedBlob {
  readonly now: Date
}

export function createAnnouncedBlobs(
  write: (blobs: readonly OfferedBlob[], now: Date) => Promise<void>,
): AnnouncedBlobs {
  // In the order of their announcement.
  const announced = new Map<string, Announced>()
  let isWriting = false

  function oldest(before: Date | null): Announced[] {
    const found: Announced[] = []
    for (const blob of announced.values()) {
      if ((before !== null && blob.now >= before) || found.length === AT_ONCE) break
      found.push(blob)
    }
    return found
  }

  async function writePortion(before: Date | null): Promise<boolean> {
    const blobs = oldest(before)
    const last = blobs.at(-1)
    if (last !== undefined) await write(blobs, last.now)
    // One that was announced again meanwhile is young again.
    for (const blob of blobs) if (announced.get(blob.hash) === blob) announced.delete(blob.hash)
    return blobs.length === AT_ONCE
  }

  async function makeRoom(): Promise<void> {
    isWriting = true
    try {
      await writePortion(null)
    } catch {
      // They stay, and are tried again with the next.
    }
    isWriting = false
  }

  return {
    add(blob, now) {
      announced.delete(blob.hash)
      announced.set(blob.hash, { ...blob, now })
      if (announced.size > MAX_ANNOUNCED && !isWriting) void makeRoom()
    },
    has: (hash) => announced.has(hash),
    async writeDown(before) {
      while (await writePortion(before));
    },
  }
}
