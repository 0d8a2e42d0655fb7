/**
 * The engines that any process knows of, who drives them, and what they can run. Who may drive one is decided by a time that is never
 * later than the server's own, as in node-rows.ts.
 */
import { writeEngineAbout } from '../../../../../domain/engine/directory/engine-about.ts'
import type {
  EngineRecord,
  EngineRegistry,
  EngineWill,
  Publication,
} from '../../../../../domain/engine/directory/engine-registry.ts'
import { type EngineRow, toEngineRecord } from '../../../rows/engine-row.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { toText } from '../../database/texts.ts'
import { NO_LATER_THAN_NOW } from './node-rows.ts'

const PUBLISH = statement<[id: string]>(
  'engines.publish',
  `INSERT INTO engine AS known (id, node_id, held_until, is_shared, catalog_hash, state, concurrency, about, seen_at)
   SELECT said.id, $1, $2, said.is_shared, said.catalog_hash, said.state, said.concurrency, said.about, $3
   FROM unnest($4::text[], $5::smallint[], $6::text[], $7::text[], $8::integer[], $9::text[])
     AS said (id, is_shared, catalog_hash, state, concurrency, about)
   ORDER BY said.id
   ON CONFLICT (id) DO UPDATE SET node_id = excluded.node_id, held_until = excluded.held_until,
     is_shared = excluded.is_shared, state = excluded.state, concurrency = excluded.concurrency, about = excluded.about,
     seen_at = excluded.seen_at, catalog_hash = coalesce(excluded.catalog_hash, known.catalog_hash)
   WHERE known.node_id = $1 OR known.held_until = 0 OR ($10::boolean AND known.held_until <= ${NO_LATER_THAN_NOW})
   RETURNING id`,
)

export async function publishEngines(db: Queryable, publication: Publication): Promise<string[]> {
  const { nodeId, engines, now, until, takesLapsed } = publication
  const rows = await db.all(PUBLISH, [
    nodeId,
    until.getTime(),
    now.getTime(),
    engines.map(({ status }) => status.id),
    engines.map(({ isShared }) => Number(isShared)),
    engines.map(({ catalogHash }) => catalogHash),
    engines.map(({ status }) => status.state),
    engines.map(({ status }) => status.concurrency),
    engines.map(({ status }) => toText(writeEngineAbout(status))),
    takesLapsed,
  ])
  return rows.map(([id]) => id)
}

const LEAVE = statement(
  'engines.leave',
  `WITH gone AS (DELETE FROM engine WHERE node_id = $1 AND is_shared = 0)
   UPDATE engine SET held_until = 0 WHERE node_id = $1 AND is_shared = 1`,
)

export async function leaveEngines(db: Queryable, nodeId: string): Promise<void> {
  await db.run(LEAVE, [nodeId])
}

const LIST = statement<EngineRow>(
  'engines.list',
  `SELECT id, node_id, held_until, is_shared, catalog_hash, state, concurrency, about, seen_at, will, will_number
   FROM engine ORDER BY id`,
)

export async function listEngines(db: Queryable): Promise<EngineRecord[]> {
  return (await db.all(LIST)).map(toEngineRecord)
}

const SET_WILL = statement(
  'engines.set_will',
  'UPDATE engine SET will = $2, will_number = will_number + 1 WHERE id = $1',
)

export async function setEngineWill(db: Queryable, engineId: string, will: EngineWill): Promise<boolean> {
  return (await db.run(SET_WILL, [engineId, will])) === 1
}

const PUT_CATALOG = statement(
  'engines.put_catalog',
  'INSERT INTO engine_catalog (hash, text) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING',
)

export async function putCatalog(db: Queryable, hash: string, text: string): Promise<void> {
  await db.run(PUT_CATALOG, [hash, toText(text)])
}

const FIND_CATALOGS = statement<[hash: string, text: string]>(
  'engines.find_catalogs',
  'SELECT hash, text FROM engine_catalog WHERE hash = ANY($1)',
)

export function findCatalogs(db: Queryable, hashes: readonly string[]): Promise<[hash: string, text: string][]> {
  return db.all(FIND_CATALOGS, [hashes])
}

const MEASURE_CATALOGS = statement<[hash: string, bytes: number]>(
  'engines.measure_catalogs',
  'SELECT hash, octet_length(text) FROM engine_catalog WHERE hash = ANY($1)',
)

export function measureCatalogs(db: Queryable, hashes: readonly string[]): Promise<[hash: string, bytes: number][]> {
  return db.all(MEASURE_CATALOGS, [hashes])
}

const FORGET = statement(
  'engines.forget',
  `DELETE FROM engine
   WHERE seen_at < CASE is_shared WHEN 1 THEN $1::bigint ELSE $2::bigint END OR id = ANY($3::text[])`,
)
const FORGET_CATALOGS = statement(
  'engines.forget_catalogs',
  `DELETE FROM engine_catalog WHERE NOT EXISTS (SELECT 1 FROM engine WHERE engine.catalog_hash = engine_catalog.hash)`,
)

export async function forgetEngines(
  db: Queryable,
  { sharedBefore, ownBefore, engineIds = [] }: Parameters<EngineRegistry['forget']>[0],
): Promise<number> {
  const removed = await db.run(FORGET, [sharedBefore.getTime(), ownBefore.getTime(), engineIds])
  await db.run(FORGET_CATALOGS)
  return removed
}
