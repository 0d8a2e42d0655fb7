/**
 * Removing bytes that other processes may store again at the same time. The file is set aside first, and only then is it checked
 * whether the bytes are still wanted. A process that announced the same bytes before the check is seen, and the file is put back; a
 * process that announces them later finds no file and stores its own.
 */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { sleep } from '../../../../lib/waiting/sleep.ts'
import { type FileOps, hasCode } from './file-ops.ts'
import type { Shards } from './shards.ts'

export interface Removal {
  remove(hash: string, isKnown: () => Promise<boolean>): Promise<void>
  /** Runs the read again while the bytes that it missed are set aside: they are about to come back, or to go for good. */
  outlast<Result>(hash: string, read: () => Promise<Result>): Promise<Result>
  /** The size of bytes that are set aside; null when there are none. */
  sizeAside(hash: string): Promise<number | null>
  /** Puts back what a process that died had set aside. */
  restore(): Promise<void>
}

const FOLDER = 'removing'
// A process asks one question while bytes are aside; after this time it is dead.
const ABANDONED_MS = 60_000
const LOOK_EVERY_MS = 20

interface RemovalDeps {
  readonly files: FileOps
  readonly shards: Shards
  readonly now: () => number
}

export function createRemoval(directory: string, { files, shards, now }: RemovalDeps): Removal {
  const folder = join(directory, FOLDER)
  const asideOf = (hash: string) => join(folder, hash)

  async function putBack(hash: string): Promise<void> {
    await shards.ensure(hash).made
    await files.rename(asideOf(hash), shards.pathOf(hash)).catch(ignoreMissing)
  }

  return {
    async remove(hash, isKnown) {
      if (await isKnown()) return
      await files.makeDirectory(folder)
      const wasThere = await files.rename(shards.pathOf(hash), asideOf(hash)).then(() => true, ignoreMissing)
      if (wasThere !== true) return
      let isWanted = true
      try {
        isWanted = await isKnown()
      } finally {
        if (isWanted) await putBack(hash)
        else await files.unlink(asideOf(hash)).catch(ignoreMissing)
      }
    },
    async outlast(hash, read) {
      for (let waitedMs = 0; ; waitedMs += LOOK_EVERY_MS) {
        try {
          return await read()
        } catch (error) {
          const isAside = hasCode(error, 'ENOENT') && (await files.sizeOf(asideOf(hash))) !== null
          // It may have come back between the read and the look.
          const isBack = hasCode(error, 'ENOENT') && !isAside && waitedMs === 0 && (await isThere(hash))
          if (!(isAside || isBack) || waitedMs > ABANDONED_MS) throw error
          await sleep(LOOK_EVERY_MS)
        }
      }
    },
    sizeAside: (hash) => files.sizeOf(asideOf(hash)),
    async restore() {
      const names = await readdir(folder).catch(() => [])
      for (const hash of names) {
        const { ctimeMs } = await stat(asideOf(hash)).catch(() => ({ ctimeMs: Number.POSITIVE_INFINITY }))
        if (now() - ctimeMs > ABANDONED_MS) await putBack(hash)
      }
    },
  }

  async function isThere(hash: string): Promise<boolean> {
    return (await files.sizeOf(shards.pathOf(hash))) !== null
  }
}

function ignoreMissing(error: unknown): void {
  if (!hasCode(error, 'ENOENT')) throw error
}
