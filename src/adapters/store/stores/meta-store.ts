/** Small values of the service itself: a read, and a write that counts only on what was read. */
import type { MetaStore } from '../../../domain/store.ts'
import { defineStore, durable, get, type OpenStore, read, run } from '../statements/operation.ts'
import { command, query, selectFrom } from '../statements/statement.ts'
import { meta } from '../tables/service.ts'

const READ = query('meta.read', meta, selectFrom(meta, 'WHERE key = :key'))
const INSERT = command('meta.insert', 'INSERT INTO meta (key, value) VALUES (:key, :to) ON CONFLICT (key) DO NOTHING')
const SWAP = command('meta.swap', 'UPDATE meta SET value = :to WHERE key = :key AND value = :from')

interface MetaSteps extends Pick<MetaStore, 'readMeta'> {
  /** Writes `to` if the value still is `from` (null: there is none) and says whether it was. */
  swapMeta(key: string, from: string | null, to: string): Promise<boolean>
}

export const metaSteps = defineStore<MetaSteps>('meta', {
  readMeta: read(function* (key) {
    return (yield* get(READ, { key }))?.value ?? null
  }),
  swapMeta: durable(function* (key, from, to) {
    return (yield* from === null ? run(INSERT, { key, to }) : run(SWAP, { key, from, to })) === 1
  }),
})

export function createMetaStore(open: OpenStore): MetaStore {
  const { readMeta, swapMeta } = open(metaSteps)
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
