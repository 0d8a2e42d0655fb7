/**
 * Deployments on a release. A change is written together with its events, its revision and the rows of the pools whose jobs it lets in
 * or keeps out, so a submit sees either all of it or nothing. Changes come one after the other: those of all deployments share one lock.
 */
import { toDefaultName } from '../../../domain/deployments/released/released-deployment.ts'
import type {
  DeploymentChange,
  PoolChange,
  ReleasedStore,
} from '../../../domain/deployments/released/released-store.ts'
import { all, defineStore, durable, get, read, run, type Steps } from '../statements/operation.ts'
import { command, insertInto, postgresOnly, query, selectFrom } from '../statements/statement.ts'
import { lockVersions, nextVersion } from '../statements/versions.ts'
import { deploymentEvent, deploymentKey, deploymentRevision, releasedDeployment } from '../tables/deployments.ts'
import { columnOf, encode, integer, omit, shape, text } from '../tables/table.ts'
import { readPoolLoads } from './deployment-store.ts'

const MAX_EVENTS = 1000

const event = omit(deploymentEvent, 'deploymentId', 'n')
const FIND = query('released.find', releasedDeployment, selectFrom(releasedDeployment, 'WHERE id = :id'))
const FIND_KEY = query(
  'released.findKey',
  deploymentKey,
  selectFrom(deploymentKey, 'WHERE account_id = :accountId AND key = :key'),
)
const INSERT = command('released.insert', insertInto(releasedDeployment))
const INSERT_KEY = command('released.insertKey', insertInto(deploymentKey))
const INSERT_REVISION = command('released.insertRevision', insertInto(deploymentRevision))
const INSERT_EVENT = command(
  'released.insertEvent',
  `INSERT INTO deployment_event (deployment_id, n, at, status, message, release_id)
   SELECT :deploymentId, coalesce(max(n), 0) + 1, :at, :status, :message, :releaseId FROM deployment_event
   WHERE deployment_id = :deploymentId`,
)
const FORGET_EVENTS = command(
  'released.forgetEvents',
  `DELETE FROM deployment_event WHERE deployment_id = :deploymentId AND n <= (
     SELECT max(n) - ${MAX_EVENTS} FROM deployment_event WHERE deployment_id = :deploymentId)`,
)
const NAMES = query(
  'released.names',
  shape({ name: text() }),
  `SELECT name FROM released_deployment
   WHERE account_id = :accountId AND build_id = :buildId AND deleted_at IS NULL AND id <> :id`,
)
const COUNT = query(
  'released.count',
  shape({ live: integer() }),
  'SELECT count(*) AS live FROM released_deployment WHERE account_id = :accountId AND deleted_at IS NULL',
)
const CHANGED = Object.entries(releasedDeployment.fields)
  .filter(([field]) => !['id', 'accountId', 'createdAt', 'createdBy', 'version'].includes(field))
  .map(([field, column]) => `${columnOf(field, column)} = :${field}`)
const UPDATE = command(
  'released.update',
  `UPDATE released_deployment SET ${CHANGED.join(', ')}, version = version + 1 WHERE id = :id AND version = :version`,
)
const ENDED = "status NOT IN ('stopped', 'failed')"
const ACTIVE = query(
  'released.active',
  releasedDeployment,
  selectFrom(releasedDeployment, `WHERE ${ENDED} ORDER BY id`),
)
const LIST = query(
  'released.list',
  releasedDeployment,
  selectFrom(
    releasedDeployment,
    `WHERE account_id = :accountId AND (CAST(:status AS text) IS NULL OR status = :status)
       AND (created_at < :createdAt OR (created_at = :createdAt AND id < :id))
     ORDER BY created_at DESC, id DESC LIMIT :limit`,
  ),
)
const REVISIONS = query(
  'released.revisions',
  deploymentRevision,
  selectFrom(deploymentRevision, 'WHERE deployment_id = :deploymentId ORDER BY revision'),
)
const EVENTS = query(
  'released.events',
  event,
  selectFrom(deploymentEvent, 'WHERE deployment_id = :deploymentId ORDER BY n', event),
)
const use = shape({ releaseId: text(), deploymentId: text(), name: text() })
const USES = `
  SELECT revision.release_id, live.id AS deployment_id, live.name
  FROM released_deployment AS live JOIN deployment_revision AS revision ON revision.deployment_id = live.id
  WHERE live.deleted_at IS NULL
  UNION SELECT live.pending ->> 'releaseId', live.id, live.name
  FROM (SELECT id, name, deleted_at, CAST(pending AS json) AS pending FROM released_deployment) AS live
  WHERE live.deleted_at IS NULL AND live.pending IS NOT NULL`
const USES_OF = query(
  'released.usesOf',
  use,
  (
    words,
  ) => `SELECT release_id, deployment_id, name FROM (${words.either(USES.replace('CAST(pending AS json) AS pending', 'pending'), USES)}) AS used
    WHERE ${words.isIn('release_id', ':releaseIds')} ORDER BY deployment_id, release_id`,
)
const USED = query(
  'released.used',
  shape({ releaseId: text() }),
  (words) =>
    `SELECT DISTINCT release_id FROM (${words.either(USES.replace('CAST(pending AS json) AS pending', 'pending'), USES)}) AS used`,
)

// Submits into a pool hold its row FOR KEY SHARE: whoever closes it waits for those that began before.
const LOCK_POOL = command('released.lockPool', postgresOnly('SELECT 1 FROM deployment WHERE id = :id FOR UPDATE'))
const PUT_POOL = command(
  'released.putPool',
  `INSERT INTO deployment (id, account_id, state, workers, idle_after, created_at, changed_at, version)
   VALUES (:id, :accountId, :state, :workers, NULL, :at, :at, ${nextVersion('deployment')})
   ON CONFLICT (id) DO UPDATE SET state = excluded.state, workers = excluded.workers, changed_at = excluded.changed_at,
     version = excluded.version`,
)

function* areEmpty(pools: readonly PoolChange[]): Steps<boolean> {
  const asked = pools.filter(({ onlyWhenEmpty }) => onlyWhenEmpty === true).map(({ id }) => id)
  for (const id of asked) yield* run(LOCK_POOL, { id })
  return (yield* readPoolLoads(asked)).every(({ queued, running }) => queued + running === 0)
}

function* putAll(change: Pick<DeploymentChange, 'events' | 'revision' | 'pools' | 'after'>): Steps<void> {
  const { after, events, revision, pools } = change
  for (const { id, accountId, state, workers } of pools)
    yield* run(PUT_POOL, { id, accountId, state, workers, at: after.updatedAt })
  if (revision !== null) yield* run(INSERT_REVISION, encode(deploymentRevision, revision))
  for (const happened of events) yield* run(INSERT_EVENT, { deploymentId: after.id, ...encode(event, happened) })
  if (events.length > 0) yield* run(FORGET_EVENTS, { deploymentId: after.id })
}

function* namesBeside(deployment: { accountId: string; buildId: string; id: string }): Steps<Set<string>> {
  const { accountId, buildId, id } = deployment
  return new Set((yield* all(NAMES, { accountId, buildId, id })).map(({ name }) => name))
}

export const releasedStore = defineStore<ReleasedStore>('released', {
  create: durable(function* ({ made, key, maxLive, pool, ...rest }) {
    const { accountId } = made
    yield* lockVersions('deployment')
    const known = key === null ? undefined : yield* get(FIND_KEY, { accountId, key })
    const before = known === undefined ? undefined : yield* get(FIND, { id: known.deploymentId })
    if (before !== undefined) return { outcome: 'repeated', deployment: before }
    if (((yield* get(COUNT, { accountId }))?.live ?? 0) >= maxLive) return { outcome: 'too_many' }
    const taken = yield* namesBeside(made)
    const deployment = { ...made, name: made.name === '' ? toDefaultName(taken) : made.name }
    if (taken.has(deployment.name)) return { outcome: 'name_taken' }
    yield* run(INSERT, encode(releasedDeployment, deployment))
    yield* putAll({ ...rest, after: deployment, pools: [pool] })
    const claim = { accountId, key: key ?? '', deploymentId: made.id, createdAt: made.createdAt }
    if (key !== null) yield* run(INSERT_KEY, encode(deploymentKey, claim))
    return { outcome: 'created', deployment }
  }),
  change: durable(
    function* (change) {
      const { after, pools } = change
      yield* lockVersions('deployment')
      if (after.deletedAt === null && (yield* namesBeside(after)).has(after.name)) return { outcome: 'name_taken' }
      if (!(yield* areEmpty(pools))) return { outcome: 'busy' }
      if ((yield* run(UPDATE, encode(releasedDeployment, after))) !== 1) return { outcome: 'stale' }
      yield* putAll(change)
      return { outcome: 'changed', deployment: { ...after, version: after.version + 1 } }
    },
    { isEssential: true },
  ),
  find: read(function* (accountId, id) {
    const found = yield* get(FIND, { id })
    return found?.accountId === accountId ? found : null
  }),
  list: read(function* ({ after, ...query }) {
    const { createdAt, id } = after ?? { createdAt: new Date(8.64e15), id: '' }
    return yield* all(LIST, { ...query, createdAt, id })
  }),
  active: read(function* () {
    return yield* all(ACTIVE)
  }),
  revisions: read(function* (deploymentId) {
    return yield* all(REVISIONS, { deploymentId })
  }),
  events: read(function* (deploymentId) {
    return yield* all(EVENTS, { deploymentId })
  }),
  usesOf: read(function* (releaseIds) {
    return yield* all(USES_OF, { releaseIds })
  }),
  usedReleases: read(function* () {
    return (yield* all(USED)).map(({ releaseId }) => releaseId)
  }),
})
