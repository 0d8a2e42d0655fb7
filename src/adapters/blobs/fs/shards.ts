/** Where a blob lies: two levels of folders by the first bytes of its hash, made when they are first needed. */
import { readdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { sleep } from '../../../../lib/waiting/sleep.ts'
import { type FileOps, hasCode } from './file-ops.ts'

const HASH = /^[0-9a-f]{64}$/
const SHARD = /^[0-9a-f]{2}$/

export interface Shards {
  pathOf(hash: string): string
  /** Makes the folder of this hash, unless it was made before. */
  ensure(hash: string): Shard
  /** Every stored hash, in portions. */
  list(): AsyncIterable<string[]>
}

interface Shard {
  /** It exists: names may be given in it. */
  readonly made: Promise<void>
  /** It, the names that were inside, and the folders above it are durable. */
  readonly durable: Promise<void>
}

const SHARD_COUNT = 65_536
const THERE: Shard = { made: Promise.resolve(), durable: Promise.resolve() }

export function openShards(directory: string, files: FileOps): Shards {
  // Those under way, and one bit for each that is done: there are 65,536 in all. A failed attempt is forgotten, so that the
  // next one tries again.
  const underway = new Map<string, Shard>()
  const done = new Uint8Array(SHARD_COUNT / 8)
  const parents = new Map<string, Promise<void>>()

  /**
   * A folder that is there may come from a process that was killed before it synced, and so may the names inside. Hence the
   * first use in the life of a process always syncs, all levels side by side.
   */
  function make(path: string, number: number): Shard {
    const topmost = files.makeDirectory(path)
    const durable = topmost.then(async (made) => {
      const parent = dirname(path)
      const steps = [syncParent(parent), files.syncDirectory(parent), made === null ? files.syncDirectory(path) : null]
      // All of them are waited for, whatever happens: nothing may still be at work when the caller hears of a failure.
      for (const step of await Promise.allSettled(steps)) if (step.status === 'rejected') throw step.reason
    })
    const shard = { made: topmost.then(() => {}), durable }
    underway.set(path, shard)
    const forget = () => underway.delete(path)
    durable.then(() => {
      done[number >> 3] |= 1 << (number & 7)
      forget()
    }, forget)
    shard.made.catch(() => {})
    return shard
  }

  /** The name of a folder of the first level, which is there by now. */
  function syncParent(parent: string): Promise<void> {
    const known = parents.get(parent)
    if (known !== undefined) return known
    const started = files.syncDirectory(directory)
    parents.set(parent, started)
    started.catch(() => parents.delete(parent))
    return started
  }

  return {
    pathOf: (hash) => join(folderOf(directory, hash), hash),
    ensure(hash) {
      const path = folderOf(directory, hash)
      const number = Number.parseInt(hash.slice(0, 4), 16)
      if ((done[number >> 3] & (1 << (number & 7))) !== 0) return THERE
      return underway.get(path) ?? make(path, number)
    },
    async *list() {
      for (const first of await namesIn(directory, SHARD)) {
        for (const second of await namesIn(join(directory, first), SHARD)) {
          const hashes = await namesIn(join(directory, first, second), HASH)
          if (hashes.length > 0) yield hashes
        }
      }
    },
  }
}

function folderOf(directory: string, hash: string): string {
  // A hash becomes a path here and nowhere else, so whatever is not one stops here.
  if (!HASH.test(hash)) throw new TypeError('not a hash')
  return join(directory, hash.slice(0, 2), hash.slice(2, 4))
}

async function namesIn(path: string, pattern: RegExp): Promise<string[]> {
  try {
    return (await readdir(path)).filter((name) => pattern.test(name))
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return []
    throw error
  }
}

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
const ASIDE_MS = 60_000
const LOOK_EVERY_MS = 20

interface RemovalDeps {
  readonly files: FileOps
  readonly shards: Shards
  readonly now: () => number
}

/**
 * Removing bytes that other processes may store again at the same time. The file is set aside first, and only then is it checked
 * whether the bytes are still wanted. A process that announced the same bytes before the check is seen, and the file is put back; a
 * process that announces them later finds no file and stores its own.
 */
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
          if (!(isAside || isBack) || waitedMs > ASIDE_MS) throw error
          await sleep(LOOK_EVERY_MS)
        }
      }
    },
    sizeAside: (hash) => files.sizeOf(asideOf(hash)),
    async restore() {
      const names = await readdir(folder).catch(() => [])
      for (const hash of names) {
        const { ctimeMs } = await stat(asideOf(hash)).catch(() => ({ ctimeMs: Number.POSITIVE_INFINITY }))
        if (now() - ctimeMs > ASIDE_MS) await putBack(hash)
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
