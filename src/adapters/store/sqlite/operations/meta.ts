/** Small values of the service itself, such as the id that ties the database to the stored bytes. */
import type { DatabaseSync } from 'node:sqlite'
import { prepareRows } from './statement.ts'

export function prepareReadMeta(database: DatabaseSync): (key: string) => string | null {
  const select = prepareRows<[string]>(database, 'SELECT value FROM meta WHERE key = ?')
  return (key) => select.get(key)?.[0] ?? null
}

interface MetaEntry {
  readonly key: string
  readonly value: string
}

/** For whoever has the database to itself. */
export function prepareWriteMeta(database: DatabaseSync): (entry: MetaEntry) => void {
  const upsert = database.prepare('INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)')
  return ({ key, value }) => {
    upsert.run(key, value)
  }
}

/** Returns what is stored: the given value, or the one that was there before. */
export function prepareEnsureMeta(database: DatabaseSync): (entry: MetaEntry) => string {
  const insert = database.prepare('INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING')
  const read = prepareReadMeta(database)
  return ({ key, value }) => {
    insert.run(key, value)
    return read(key) ?? value
  }
}

/** Walks the whole database: `ok`, or what is wrong with it. */
export function prepareCheckIntegrity(database: DatabaseSync): (input: null) => string {
  const check = prepareRows<[string]>(database, 'PRAGMA integrity_check')
  return () =>
    check
      .all()
      .map(([line]) => line)
      .join('\n')
}
