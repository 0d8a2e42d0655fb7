/** Small values of the service itself, the same for all of its processes. */
import type { MetaStore } from '../../../../domain/store.ts'
import { statement } from '../database/statement.ts'
import type { StoreParts } from './store-parts.ts'

const READ = statement<[string]>('meta.read', 'SELECT value FROM meta WHERE key = $1')
const WRITE = statement(
  'meta.write',
  'INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value',
)
const INSERT = statement('meta.insert', 'INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING')

export function createMetaStore({ durable, read }: StoreParts): MetaStore {
  const readMeta = async (key: string) => (await read.get(READ, [key]))?.[0] ?? null
  return {
    readMeta,
    async writeMeta(key, value) {
      await durable.run(WRITE, [key, value])
    },
    async ensureMeta(key, make) {
      const known = await readMeta(key)
      if (known !== null) return known
      const value = make()
      await durable.run(INSERT, [key, value])
      return (await readMeta(key)) ?? value
    },
  }
}
