/** Bytes of small outputs, by their hash. */
import type { DatabaseSync } from 'node:sqlite'
import { prepareRows } from '../statement.ts'

interface PutInput {
  readonly hash: string
  /** One character per byte: a text crosses to the writer faster than a buffer. */
  readonly text: string
}

export function preparePutBytes(database: DatabaseSync): (input: PutInput) => void {
  // What is there is compared, because it may be damaged; the same bytes again change nothing.
  const insert = database.prepare(`
    INSERT INTO small_bytes (hash, bytes) VALUES (?, ?)
    ON CONFLICT (hash) DO UPDATE SET bytes = excluded.bytes WHERE bytes IS NOT excluded.bytes`)
  return ({ hash, text }) => {
    insert.run(hash, Buffer.from(text, 'latin1'))
  }
}

export function prepareRemoveBytes(database: DatabaseSync): (hash: string) => void {
  // The pages of removed rows stay in the file, and in copies of it, until they are used again.
  const erase = database.prepare('UPDATE small_bytes SET bytes = zeroblob(length(bytes)) WHERE hash = ?')
  const remove = database.prepare('DELETE FROM small_bytes WHERE hash = ?')
  return (hash) => {
    erase.run(hash)
    remove.run(hash)
  }
}

export function prepareSizeOfBytes(database: DatabaseSync): (hash: string) => number | null {
  const select = prepareRows<[number]>(database, 'SELECT length(bytes) FROM small_bytes WHERE hash = ?')
  return (hash) => select.get(hash)?.[0] ?? null
}

export function prepareFindBytes(database: DatabaseSync): (hash: string) => Uint8Array | null {
  const select = prepareRows<[Uint8Array]>(database, 'SELECT bytes FROM small_bytes WHERE hash = ?')
  return (hash) => select.get(hash)?.[0] ?? null
}

/** The next hashes after one, in their order. */
export function prepareListBytes(
  database: DatabaseSync,
): (query: { readonly after: string; readonly limit: number }) => string[] {
  const select = prepareRows<[string]>(database, 'SELECT hash FROM small_bytes WHERE hash > ? ORDER BY hash LIMIT ?')
  return ({ after, limit }) => select.all(after, limit).map(([hash]) => hash)
}
