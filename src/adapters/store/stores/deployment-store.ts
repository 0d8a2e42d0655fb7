/** Deployments, and how much work their pools have. */
import { DEFAULT_POOL } from '../../../domain/deployments/deployment.ts'
import type { DeploymentStore, PoolLoad } from '../../../domain/deployments/deployment-store.ts'
import { all, defineStore, durable, get, read, run, type Steps } from '../statements/operation.ts'
import { both, command, postgresOnly, query, selectFrom } from '../statements/statement.ts'
import { changedAfter, lockVersions, nextVersion } from '../statements/versions.ts'
import { deployment } from '../tables/accounts.ts'
import { encode, integer, omit, shape, text } from '../tables/table.ts'

const stored = omit(deployment, 'version')

const INSERT = command(
  'deployments.insert',
  `INSERT INTO deployment (${stored.columns}, version)
   VALUES (:id, :accountId, :state, :workers, :idleAfterMs, :createdAt, :changedAt, ${nextVersion('deployment')})
   ON CONFLICT (id) DO NOTHING`,
)
// Submits into its pool hold the row FOR KEY SHARE. A move waits for those that began before it, and then counts their jobs.
const LOCK = command('deployments.lock', postgresOnly('SELECT 1 FROM deployment WHERE id = :id FOR UPDATE'))
const MOVE = query(
  'deployments.move',
  stored,
  (words) => `UPDATE deployment SET state = :to, changed_at = :at, version = ${nextVersion('deployment')}
    WHERE id = :id AND ${words.isIn('state', ':from')} RETURNING ${stored.columns}`,
)
const CONFIGURE = query(
  'deployments.configure',
  stored,
  `UPDATE deployment SET workers = :workers, idle_after = :idleAfterMs, changed_at = :at, version = ${nextVersion('deployment')}
   WHERE id = :id RETURNING ${stored.columns}`,
)
const LIST = query('deployments.list', stored, selectFrom(deployment, 'ORDER BY id', stored))
const changed = changedAfter(deployment)

const load = shape({ pool: text(), queued: integer(), running: integer() })
const COUNTED = 1000
// As the partial index states it: without these very words it would not be used.
const LIVE_IN_POOL = `FROM job INDEXED BY job_pool_live
  WHERE pool <> 'default' AND status IN ('queued', 'running', 'canceling') AND pool = asked.value`
const countUpTo = (rows: string) => `(SELECT count(*) FROM (SELECT 1 ${rows} LIMIT ${COUNTED}) AS counted)`

// Counts stop at a bound. In SQLite the common pool has an order by account only: there the accounts are counted whose jobs wait in it,
// of which there are at most as many. In Postgres waiting jobs are counted in the order of the index: else a pool where none wait would
// be sought by walking the table; held ones are never more than there are workers, so all of them are counted at once.
const LOADS = query(
  'deployments.loads',
  load,
  both({
    sqlite: `
      SELECT asked.value AS pool,
        CASE asked.value WHEN '${DEFAULT_POOL}' THEN (
          SELECT count(*) FROM account INDEXED BY account_waiting WHERE queued > 0 AND EXISTS (
            SELECT 1 FROM job INDEXED BY job_queue WHERE status = 'queued' AND account_id = account.id AND pool = '${DEFAULT_POOL}'))
        ELSE ${countUpTo(`${LIVE_IN_POOL} AND status = 'queued'`)} END AS queued,
        CASE asked.value WHEN '${DEFAULT_POOL}' THEN
          ${countUpTo(`FROM job INDEXED BY job_lease WHERE status IN ('running', 'canceling') AND pool = '${DEFAULT_POOL}'`)}
        ELSE ${countUpTo(`${LIVE_IN_POOL} AND status <> 'queued'`)} END AS running
      FROM json_each(:pools) AS asked ORDER BY asked.key`,
    postgres: `
      WITH held AS MATERIALIZED (
        SELECT pool, count(*) AS jobs FROM job WHERE status IN ('running', 'canceling') AND pool = ANY(:pools::text[]) GROUP BY pool
      )
      SELECT asked.pool,
        ${countUpTo(`FROM job WHERE status = 'queued' AND job.pool = asked.pool ORDER BY pool, needs, account_id`)} AS queued,
        least(coalesce(held.jobs, 0), ${COUNTED}) AS running
      FROM unnest(:pools::text[]) WITH ORDINALITY AS asked (pool, place) LEFT JOIN held ON held.pool = asked.pool
      ORDER BY asked.place`,
  }),
)

// Counted along the same indexes, without a bound: the same figure as the sum of the accounts' counters.
const COUNTS = query(
  'deployments.count',
  load,
  both({
    sqlite: `
      SELECT asked.value AS pool,
        CASE asked.value WHEN '${DEFAULT_POOL}' THEN
          (SELECT count(*) FROM job INDEXED BY job_queue WHERE status = 'queued' AND pool = '${DEFAULT_POOL}')
        ELSE (SELECT count(*) ${LIVE_IN_POOL} AND status = 'queued') END AS queued,
        CASE asked.value WHEN '${DEFAULT_POOL}' THEN
          (SELECT count(*) FROM job INDEXED BY job_lease WHERE status IN ('running', 'canceling') AND pool = '${DEFAULT_POOL}')
        ELSE (SELECT count(*) ${LIVE_IN_POOL} AND status <> 'queued') END AS running
      FROM json_each(:pools) AS asked ORDER BY asked.key`,
    postgres: `
      WITH held AS MATERIALIZED (
        SELECT pool, count(*) AS jobs FROM job WHERE status IN ('running', 'canceling') AND pool = ANY(:pools::text[]) GROUP BY pool
      )
      SELECT asked.pool,
        (SELECT count(*) FROM job WHERE status = 'queued' AND job.pool = asked.pool) AS queued,
        coalesce(held.jobs, 0) AS running
      FROM unnest(:pools::text[]) WITH ORDINALITY AS asked (pool, place) LEFT JOIN held ON held.pool = asked.pool
      ORDER BY asked.place`,
  }),
)

export function* countPools(pools: readonly string[]): Steps<PoolLoad[]> {
  return pools.length === 0 ? [] : yield* all(COUNTS, { pools })
}

export function* readPoolLoads(pools: readonly string[]): Steps<PoolLoad[]> {
  return pools.length === 0 ? [] : yield* all(LOADS, { pools })
}

/** How much work waits is counted by each database in its own way: `demands` is theirs. */
export const deploymentStore = defineStore<Omit<DeploymentStore, 'demands'>>('deployments', {
  create: durable(function* (created) {
    yield* lockVersions('deployment')
    return (yield* run(INSERT, encode(stored, created))) === 1
  }),
  move: durable(
    function* ({ id, from, to, at, onlyWhenEmpty = false }) {
      yield* lockVersions('deployment')
      yield* run(LOCK, { id })
      if (onlyWhenEmpty && (yield* readPoolLoads([id])).some(({ queued, running }) => queued + running > 0)) return null
      return (yield* get(MOVE, { id, from, to, at })) ?? null
    },
    { isEssential: true },
  ),
  configure: durable(function* (settings) {
    yield* lockVersions('deployment')
    return (yield* get(CONFIGURE, { ...settings })) ?? null
  }),
  list: read(function* () {
    return yield* all(LIST)
  }),
  changedAfter: read(function* (version, limit) {
    return (yield* changed(version, limit)).map(({ version, ...deployment }) => ({ deployment, version }))
  }),
  loads: read(readPoolLoads),
  count: read(countPools),
})
