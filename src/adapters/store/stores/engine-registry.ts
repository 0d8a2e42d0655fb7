/** The engines that any process knows of, who drives them, and what they can run. */
import { readEngineAbout, writeEngineAbout } from '../../../domain/engine/directory/engine-about.ts'
import type { EngineRegistry } from '../../../domain/engine/directory/engine-registry.ts'
import { all, chore, defineStore, durable, read, relaxed, run, together } from '../statements/operation.ts'
import { command, insertInto, query, selectFrom, toRows } from '../statements/statement.ts'
import { engine, engineCatalog } from '../tables/nodes.ts'
import { integer, pick, shape } from '../tables/table.ts'
import { noLaterThanNow } from './node-store.ts'

const PUBLISH = query(
  'engines.publish',
  pick(engine, 'id'),
  (words) => `
    INSERT INTO engine AS known (id, node_id, held_until, is_shared, catalog_hash, state, concurrency, about, seen_at)
    SELECT id, :nodeId, :until, is_shared, catalog_hash, state, concurrency, about, :now
    FROM ${words.rows(':engines', {
      ...{
        id: 'text',
        is_shared: 'smallint',
        catalog_hash: 'text',
        state: 'text',
        concurrency: 'integer',
        about: 'text',
      },
    })} AS said WHERE true ORDER BY id
    ON CONFLICT (id) DO UPDATE SET node_id = excluded.node_id, held_until = excluded.held_until,
      is_shared = excluded.is_shared, state = excluded.state, concurrency = excluded.concurrency, about = excluded.about,
      seen_at = excluded.seen_at, catalog_hash = coalesce(excluded.catalog_hash, known.catalog_hash)
    WHERE known.node_id = :nodeId OR known.held_until = 0
      OR (CAST(:takesLapsed AS integer) = 1 AND known.held_until <= ${noLaterThanNow(words)})
    RETURNING id`,
)
const REMOVE_OWN = command('engines.removeOwn', 'DELETE FROM engine WHERE node_id = :nodeId AND is_shared = 0')
const FREE = command('engines.free', 'UPDATE engine SET held_until = 0 WHERE node_id = :nodeId')
const LIST = query('engines.list', engine, selectFrom(engine, 'ORDER BY id'))
const SET_WILL = command(
  'engines.setWill',
  'UPDATE engine SET will = :will, will_number = will_number + 1 WHERE id = :engineId',
)
const PUT_CATALOG = command('engines.putCatalog', `${insertInto(engineCatalog)} ON CONFLICT (hash) DO NOTHING`)
const FIND_CATALOGS = query('engines.findCatalogs', engineCatalog, (words) =>
  selectFrom(engineCatalog, `WHERE ${words.isIn('hash', ':hashes')}`),
)
const MEASURE_CATALOGS = query(
  'engines.measureCatalogs',
  shape({ hash: engineCatalog.fields.hash, bytes: integer() }),
  (words) => `SELECT hash, octet_length(text) AS bytes FROM engine_catalog WHERE ${words.isIn('hash', ':hashes')}`,
)
const FORGET = command(
  'engines.forget',
  (words) => `DELETE FROM engine
    WHERE seen_at < CASE is_shared WHEN 1 THEN CAST(:sharedBefore AS bigint) ELSE CAST(:ownBefore AS bigint) END
      OR ${words.isIn('id', ':engineIds')}`,
)
const FORGET_CATALOGS = command(
  'engines.forgetCatalogs',
  'DELETE FROM engine_catalog WHERE NOT EXISTS (SELECT 1 FROM engine WHERE engine.catalog_hash = engine_catalog.hash)',
)

export const engineRegistry = defineStore<EngineRegistry>('engines', {
  publish: relaxed(function* ({ nodeId, engines, now, until, takesLapsed }) {
    if (engines.length === 0) return []
    const said = engines.map(({ isShared, catalogHash, status }) => ({
      ...{ id: status.id, is_shared: Number(isShared), catalog_hash: catalogHash, state: status.state },
      ...{ concurrency: status.concurrency, about: writeEngineAbout(status) },
    }))
    const values = { nodeId, now, until, takesLapsed: Number(takesLapsed), ...toRows('engines', said) }
    return (yield* all(PUBLISH, values)).map(({ id }) => id)
  }),
  leave: relaxed(
    function* (nodeId) {
      yield* together(run(REMOVE_OWN, { nodeId }), run(FREE, { nodeId }))
    },
    { isEssential: true, isTransaction: true },
  ),
  list: read(function* () {
    return (yield* all(LIST)).map(({ id, state, concurrency, about, ...record }) => ({
      ...record,
      status: readEngineAbout({ id, state, concurrency }, about),
    }))
  }),
  setWill: durable(function* (engineId, will) {
    return (yield* run(SET_WILL, { engineId, will })) === 1
  }),
  putCatalog: durable(
    function* (hash, text) {
      yield* run(PUT_CATALOG, { hash, text })
    },
    { weigh: (_, text) => text.length },
  ),
  findCatalogs: read(function* (hashes) {
    return new Map((yield* all(FIND_CATALOGS, { hashes })).map(({ hash, text }) => [hash, text]))
  }),
  measureCatalogs: read(function* (hashes) {
    return new Map((yield* all(MEASURE_CATALOGS, { hashes })).map(({ hash, bytes }) => [hash, bytes]))
  }),
  forget: chore(
    function* ({ sharedBefore, ownBefore, engineIds = [] }) {
      const [removed] = yield* together(run(FORGET, { sharedBefore, ownBefore, engineIds }), run(FORGET_CATALOGS))
      return removed
    },
    { isEssential: true },
  ),
})
