/** Where a blob lies: two levels of folders by the first bytes of its hash, made when they are first needed. */
import { readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type FileOps, hasCode } from './file-ops.ts'

const HASH = /^[0-9a-f]{64}$/
const SHARD = /^[0-9a-f]{2}$/

export interface Shards {
  pathOf(hash: string): string
  /** The folder of this hash exists, and it and the names inside are durable. */
  ensure(hash: string): Promise<void>
  /** Every stored hash, in portions. */
  list(): AsyncIterable<string[]>
}

export function openShards(directory: string, files: FileOps): Shards {
  // At most 65,536 + 256 promises. A failed attempt is forgotten, so that the next one tries again.
  const ensured = new Map<string, Promise<void>>()

  function once(path: string, action: () => Promise<void>): Promise<void> {
    const known = ensured.get(path)
    if (known) return known
    const started = action()
    ensured.set(path, started)
    started.catch(() => ensured.delete(path))
    return started
  }

  /**
   * A folder that is there may come from a process that was killed before it synced, and so may the names inside. Hence the
   * first use in the life of a process always syncs.
   */
  async function make(path: string): Promise<void> {
    const made = await files.makeDirectory(path)
    await Promise.all([files.syncDirectory(dirname(path)), made === null ? files.syncDirectory(path) : null])
  }

  return {
    pathOf: (hash) => join(folderOf(directory, hash), hash),
    ensure(hash) {
      const path = folderOf(directory, hash)
      return once(path, async () => {
        const parent = dirname(path)
        await once(parent, () => make(parent))
        await make(path)
      })
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
