/** The engines that any process knows of, who drives them, and what they can run. */
import type { DatabaseSync } from 'node:sqlite'
import { writeEngineAbout } from '../../../../../domain/engine/directory/engine-about.ts'
import type { EngineRecord, EngineWill, Publication } from '../../../../../domain/engine/directory/engine-registry.ts'
import type { EngineState } from '../../../../../domain/engine/fleet/engine-status.ts'
import { type EngineRow, toEngineRecord } from '../../../rows/engine-row.ts'
import { prepareRows } from '../statement.ts'

interface PublishedFields {
  readonly id: string
  readonly isShared: number
  readonly catalogHash: string | null
  readonly state: EngineState
  readonly concurrency: number
  readonly about: string
}

interface PublishInput {
  readonly nodeId: string
  readonly now: number
  readonly until: number
  readonly takesLapsed: number
  readonly engines: readonly PublishedFields[]
}

export function toPublishInput({ nodeId, engines, now, until, takesLapsed }: Publication): PublishInput {
  return {
    nodeId,
    now: now.getTime(),
    until: until.getTime(),
    takesLapsed: Number(takesLapsed),
    engines: engines.map(({ isShared, catalogHash, status }) => ({
      id: status.id,
      isShared: Number(isShared),
      catalogHash,
      state: status.state,
      concurrency: status.concurrency,
      about: writeEngineAbout(status),
    })),
  }
}

export function preparePublishEngines(database: DatabaseSync): (input: PublishInput) => string[] {
  const upsert = database.prepare(`
    INSERT INTO engine (id, node_id, held_until, is_shared, catalog_hash, state, concurrency, about, seen_at)
    VALUES (?1, ?2, ?4, ?5, ?6, ?7, ?8, ?9, ?3)
    ON CONFLICT (id) DO UPDATE SET node_id = ?2, held_until = ?4, is_shared = ?5, state = ?7, concurrency = ?8, about = ?9,
      seen_at = ?3, catalog_hash = coalesce(?6, catalog_hash)
    WHERE node_id = ?2 OR held_until = 0 OR (?10 AND held_until <= ?3)`)
  return ({ nodeId, now, until, takesLapsed, engines }) =>
    engines
      .filter(
        ({ id, isShared, catalogHash, state, concurrency, about }) =>
          upsert.run(id, nodeId, now, until, isShared, catalogHash, state, concurrency, about, takesLapsed).changes ===
          1,
      )
      .map(({ id }) => id)
}

export function prepareLeaveEngines(database: DatabaseSync): (nodeId: string) => void {
  const removeOwn = database.prepare('DELETE FROM engine WHERE node_id = ? AND is_shared = 0')
  const free = database.prepare('UPDATE engine SET held_until = 0 WHERE node_id = ?')
  return (nodeId) => {
    removeOwn.run(nodeId)
    free.run(nodeId)
  }
}

const COLUMNS = `id, node_id, held_until, is_shared, catalog_hash, state, concurrency, about, seen_at, will, will_number`

export function prepareListEngines(database: DatabaseSync): (input: null) => EngineRecord[] {
  const select = prepareRows<EngineRow>(database, `SELECT ${COLUMNS} FROM engine ORDER BY id`)
  return () => select.all().map(toEngineRecord)
}

export function prepareSetEngineWill(
  database: DatabaseSync,
): (input: { readonly engineId: string; readonly will: EngineWill }) => boolean {
  const update = database.prepare('UPDATE engine SET will = ?2, will_number = will_number + 1 WHERE id = ?1')
  return ({ engineId, will }) => update.run(engineId, will).changes === 1
}

export function preparePutCatalog(
  database: DatabaseSync,
): (input: { readonly hash: string; readonly text: string }) => void {
  const insert = database.prepare('INSERT INTO engine_catalog (hash, text) VALUES (?, ?) ON CONFLICT (hash) DO NOTHING')
  return ({ hash, text }) => {
    insert.run(hash, text)
  }
}

export function prepareFindCatalogs(database: DatabaseSync): (hashes: readonly string[]) => [string, string][] {
  const select = prepareRows<[hash: string, text: string]>(
    database,
    'SELECT hash, text FROM engine_catalog WHERE hash IN (SELECT value FROM json_each(?))',
  )
  return (hashes) => select.all(JSON.stringify(hashes))
}

export function prepareMeasureCatalogs(database: DatabaseSync): (hashes: readonly string[]) => [string, number][] {
  const select = prepareRows<[hash: string, bytes: number]>(
    database,
    'SELECT hash, octet_length(text) FROM engine_catalog WHERE hash IN (SELECT value FROM json_each(?))',
  )
  return (hashes) => select.all(JSON.stringify(hashes))
}

interface ForgetInput {
  readonly sharedBefore: number
  readonly ownBefore: number
  readonly engineIds: readonly string[]
}

export function prepareForgetEngines(database: DatabaseSync): (input: ForgetInput) => number {
  const remove = database.prepare(`
    DELETE FROM engine WHERE seen_at < iif(is_shared = 1, ?1, ?2) OR id IN (SELECT value FROM json_each(?3))`)
  const removeCatalogs = database.prepare(`
    DELETE FROM engine_catalog
    WHERE hash NOT IN (SELECT catalog_hash FROM engine WHERE catalog_hash IS NOT NULL)`)
  return ({ sharedBefore, ownBefore, engineIds }) => {
    const removed = Number(remove.run(sharedBefore, ownBefore, JSON.stringify(engineIds)).changes)
    removeCatalogs.run()
    return removed
  }
}
