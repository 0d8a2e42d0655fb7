/** Small values of the service itself, the same for all of its processes. */
import type { MetaStore } from '../../../../domain/store.ts'
import { createMetaChanges } from '../../meta-changes.ts'
import { statement } from '../database/statement.ts'
import type { StoreParts } from './store-parts.ts'

const READ = statement<[string]>('meta.read', 'SELECT value FROM meta WHERE key = $1')
const INSERT = statement('meta.insert', 'INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING')
const SWAP = statement('meta.swap', 'UPDATE meta SET value = $3 WHERE key = $1 AND value = $2')

export function createMetaStore({ durable, read }: StoreParts): MetaStore {
  return createMetaChanges({
    readMeta: async (key) => (await read.get(READ, [key]))?.[0] ?? null,
    swapMeta: async (key, from, to) =>
      (await (from === null ? durable.run(INSERT, [key, to]) : durable.run(SWAP, [key, from, to]))) === 1,
  })
}
