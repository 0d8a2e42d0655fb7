/** Endpoints. Publishes of one endpoint come one after the other: each locks its row, and the account's, which counts them. */
import { isDeepStrictEqual } from 'node:util'
import { type Endpoint, EVERYONE } from '../../../domain/endpoints/endpoint.ts'
import type { EndpointStore, Publish, Published } from '../../../domain/endpoints/endpoint-store.ts'
import { all, defineStore, durable, get, read, report, run, type Steps } from '../statements/operation.ts'
import { command, insertInto, postgresOnly, query, selectFrom, toRows, upsertInto } from '../statements/statement.ts'
import { endpoint, endpointVersion } from '../tables/endpoints.ts'
import { encode, integer, pick, type RowOf, shape } from '../tables/table.ts'
import { findEndpointRuns } from './endpoint-runs.ts'
import { dropShares } from './share-store.ts'

const OWN = 'account_id = :accountId AND name = :name'

const LOCK_ACCOUNT = command(
  'endpoints.lockAccount',
  postgresOnly('SELECT pg_advisory_xact_lock(7267305, hashtext(:accountId))'),
)
const LOCK = query('endpoints.lock', endpoint, (words) => selectFrom(endpoint, `WHERE ${OWN} ${words.lock('UPDATE')}`))
const COUNT = query(
  'endpoints.count',
  shape({ present: integer(), known: integer() }),
  'SELECT count(*) FILTER (WHERE is_removed = 0) AS present, count(*) AS known FROM endpoint WHERE account_id = :accountId',
)
const FIND = query('endpoints.find', endpoint, selectFrom(endpoint, `WHERE ${OWN} AND is_removed = 0`))
const LIST = query(
  'endpoints.list',
  endpoint,
  selectFrom(endpoint, 'WHERE account_id = :accountId AND is_removed = 0 AND name > :after ORDER BY name LIMIT :limit'),
)
// By each of the two names under which it is shared with the account, so that no more than a page is read of either.
const sharedWith = (caller: string) => `SELECT * FROM (
    SELECT account_id AS owner, name AS called FROM endpoint_caller
    WHERE caller = ${caller} AND account_id <> :accountId AND (account_id, name) > (:owner, :after)
    ORDER BY account_id, name LIMIT :limit) AS listed`
const LIST_SHARED = query(
  'endpoints.listShared',
  endpoint,
  ({ either }) => `
    SELECT ${endpoint.columns}
    FROM (${sharedWith(':accountId')} UNION ${sharedWith(`'${EVERYONE}'`)} ORDER BY 1, 2 LIMIT :limit) AS found
    ${either('CROSS JOIN', 'JOIN')} endpoint ON account_id = owner AND name = called
    WHERE is_removed = 0 ORDER BY account_id, name`,
)
const DROP_CALLERS = command('endpoints.dropCallers', `DELETE FROM endpoint_caller WHERE ${OWN}`)
const INSERT_CALLERS = command(
  'endpoints.insertCallers',
  (words) => `INSERT INTO endpoint_caller (caller, account_id, name)
    SELECT caller, :accountId, :name FROM ${words.rows(':callers', { caller: 'text' })} AS new`,
)
// Whether the text is a model or the deployment of the endpoint is decided by whoever reads the row.
const FIND_BY_MODEL = query('endpoints.findByModel', endpoint, (words) =>
  selectFrom(
    endpoint,
    `WHERE account_id = :accountId AND is_removed = 0
     AND ${words.either('instr(settings, :quoted)', 'strpos(settings, :quoted)')} > 0 ORDER BY name`,
  ),
)
const PUT = command('endpoints.put', upsertInto(endpoint))
const FIND_HASH = query(
  'endpoints.findHash',
  endpointVersion,
  selectFrom(endpointVersion, `WHERE ${OWN} AND hash = :hash`),
)
const FIND_VERSION = query(
  'endpoints.findVersion',
  endpointVersion,
  selectFrom(endpointVersion, `WHERE ${OWN} AND number = :number`),
)
const place = pick(endpointVersion, 'name', 'number')
const FIND_BY_HASH = query(
  'endpoints.findByHash',
  place,
  selectFrom(endpointVersion, 'WHERE account_id = :accountId AND hash = :hash ORDER BY name', place),
)
const sharedPlace = pick(endpointVersion, 'accountId', 'name', 'number')
const FIND_SHARED_BY_HASH = query(
  'endpoints.findSharedByHash',
  sharedPlace,
  selectFrom(
    endpointVersion,
    `AS version WHERE hash = :hash AND account_id <> :accountId AND EXISTS (
       SELECT 1 FROM endpoint_caller AS lent
       WHERE lent.caller IN (:accountId, '${EVERYONE}') AND lent.account_id = version.account_id AND lent.name = version.name)
     ORDER BY account_id, name LIMIT 100`,
    sharedPlace,
  ),
)
const INSERT_VERSION = command('endpoints.insertVersion', insertInto(endpointVersion))
const summary = pick(endpointVersion, 'number', 'hash', 'note', 'createdAt', 'createdBy', 'required')
const LIST_VERSIONS = query(
  'endpoints.listVersions',
  summary,
  selectFrom(endpointVersion, `WHERE ${OWN} AND number < :before ORDER BY number DESC LIMIT :limit`, summary),
)
const DROP_VERSIONS = command('endpoints.dropVersions', `DELETE FROM endpoint_version WHERE ${OWN}`)

type StoredEndpoint = RowOf<typeof endpoint>
type StoredVersion = RowOf<typeof endpointVersion>

const toEndpoint = ({ isRemoved: _, ...rest }: StoredEndpoint): Endpoint => rest
const toVersion = ({ accountId: _, name: __, ...rest }: StoredVersion) => rest

const callersOf = (of: StoredEndpoint | undefined) =>
  of === undefined || of.isRemoved ? [] : of.settings.callers.map((caller) => ({ caller }))

/** `before` undefined: there was none. */
function* put(changed: StoredEndpoint, before: StoredEndpoint | undefined): Steps<Endpoint> {
  const [were, are] = [callersOf(before), callersOf(changed)]
  const { accountId, name } = changed
  const areOthers = !isDeepStrictEqual(were, are)
  if (areOthers && were.length > 0) yield* run(DROP_CALLERS, { accountId, name })
  if (areOthers && are.length > 0) yield* run(INSERT_CALLERS, { accountId, name, ...toRows('callers', are) })
  yield* run(PUT, encode(endpoint, changed))
  return toEndpoint(changed)
}

/** One that was removed counts on from its last number; everything else begins anew. */
function startOf({ accountId, name, texts, version }: Publish, before: StoredEndpoint | undefined): StoredEndpoint {
  const { createdAt } = version
  if (before !== undefined && !before.isRemoved) return { ...before, ...texts, updatedAt: createdAt }
  return {
    ...{ accountId, name, title: name, description: '', settings: texts.settings as Endpoint['settings'] },
    ...{ currentVersion: 0, lastVersion: before?.lastVersion ?? 0, aliases: {}, revision: before?.revision ?? 0 },
    ...{ state: 'ready', createdAt, updatedAt: createdAt, isRemoved: false },
    ...texts,
  }
}

// A name that was removed is kept, so that its numbers count on: what was called by a number is never another version.
const NAMES_FOR_EACH = 10

function* publish(request: Publish): Steps<Published> {
  const { accountId, name, version, revision, limit } = request
  const key = { accountId, name }
  yield* run(LOCK_ACCOUNT, { accountId })
  const before = yield* get(LOCK, key)
  const known = before === undefined || before.isRemoved ? null : before.revision
  if (known !== revision) return { outcome: 'changed' }
  if (known === null) {
    const count = (yield* get(COUNT, { accountId })) ?? { present: 0, known: 0 }
    const isTooMany = count.present >= limit || (before === undefined && count.known >= limit * NAMES_FOR_EACH)
    if (isTooMany) return { outcome: 'too_many' }
  }
  const same = yield* get(FIND_HASH, { ...key, hash: version.hash })
  const start = startOf(request, before)
  const number = same?.number ?? start.lastVersion + 1
  const made: StoredVersion = same ?? { ...key, ...version, number }
  if (same === undefined) yield* run(INSERT_VERSION, encode(endpointVersion, made))
  const lastVersion = Math.max(start.lastVersion, number)
  const changed = yield* put({ ...start, currentVersion: number, lastVersion, revision: start.revision + 1 }, before)
  return { outcome: 'published', endpoint: changed, version: toVersion(made), isNew: same === undefined }
}

export const endpointStore = defineStore<EndpointStore>('endpoints', {
  publish: durable(publish, { weigh: ({ version }) => version.graph.length }),
  find: read(function* (key) {
    const found = yield* get(FIND, { ...key })
    return found === undefined ? null : toEndpoint(found)
  }),
  list: read(function* (accountId, { after, limit }) {
    return (yield* all(LIST, { accountId, after: after ?? '', limit })).map(toEndpoint)
  }),
  listShared: read(function* (accountId, { after, limit }) {
    const asked = { accountId, owner: after?.accountId ?? '', after: after?.name ?? '', limit }
    return (yield* all(LIST_SHARED, asked)).map(toEndpoint)
  }),
  findByModel: read(function* (accountId, model) {
    const found = yield* all(FIND_BY_MODEL, { accountId, quoted: JSON.stringify(model) })
    const first = found.find(({ settings }) => settings.models.includes(model))
    return first === undefined ? null : toEndpoint(first)
  }),
  change: durable(function* (key, revision, change, at) {
    const before = yield* get(LOCK, { ...key })
    if (before === undefined || before.isRemoved || before.revision !== revision) return null
    return yield* put({ ...before, ...change, updatedAt: at, revision: revision + 1 }, before)
  }),
  setPrice: durable(function* (key, price, at) {
    const before = yield* get(LOCK, { ...key })
    if (before === undefined || before.isRemoved) return null
    const settings = { ...before.settings, price }
    return yield* put({ ...before, settings, updatedAt: at, revision: before.revision + 1 }, before)
  }),
  remove: durable(
    function* (key, at) {
      const before = yield* get(LOCK, { ...key })
      if (before === undefined || before.isRemoved) return false
      const emptied = { ...before, title: '', description: '', aliases: {}, isRemoved: true, updatedAt: at }
      yield* dropShares(key)
      yield* run(DROP_VERSIONS, { ...key })
      yield* put({ ...emptied, revision: before.revision + 1 }, before)
      return true
    },
    { isEssential: true },
  ),
  findVersion: read(function* (key, number) {
    const found = yield* get(FIND_VERSION, { ...key, number })
    return found === undefined ? null : toVersion(found)
  }),
  findByHash: read(function* (accountId, hash) {
    return yield* all(FIND_BY_HASH, { accountId, hash })
  }),
  findSharedByHash: read(function* (accountId, hash) {
    return yield* all(FIND_SHARED_BY_HASH, { accountId, hash })
  }),
  listVersions: read(function* (key, { before, limit }) {
    return yield* all(LIST_VERSIONS, { ...key, before: before ?? 2_147_483_647, limit })
  }),
  findRuns: report(findEndpointRuns),
})
