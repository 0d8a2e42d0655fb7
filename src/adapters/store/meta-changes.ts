/** The small values of a service over two operations that every database has: a read, and a write that counts only on what was read. */
import type { MetaStore } from '../../domain/store.ts'

interface MetaOperations {
  readMeta(key: string): Promise<string | null>
  /** Writes `to` if the value still is `from` (null: there is none) and says whether it was. */
  swapMeta(key: string, from: string | null, to: string): Promise<boolean>
}

export function createMetaChanges({ readMeta, swapMeta }: MetaOperations): MetaStore {
  // Whoever has to try again was overtaken by a change that was written, so the tries of all together come to an end.
  async function changeMeta(key: string, change: (value: string | null) => string): Promise<string> {
    for (;;) {
      const from = await readMeta(key)
      const to = change(from)
      if (to === from || (await swapMeta(key, from, to))) return to
    }
  }

  return { readMeta, changeMeta, ensureMeta: (key, make) => changeMeta(key, (value) => value ?? make()) }
}
