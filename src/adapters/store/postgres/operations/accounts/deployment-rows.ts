/** Deployments and the load of their pools. */
import type { Deployment } from '../../../../../domain/deployments/deployment.ts'
import type {
  DeploymentMove,
  DeploymentSettings,
  PoolLoad,
  VersionedDeployment,
} from '../../../../../domain/deployments/deployment-store.ts'
import { DEPLOYMENT_COLUMNS, type DeploymentRow, toDeployment } from '../../../rows/deployment-row.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { lockVersions, nextVersion } from '../../database/versions.ts'

const INSERT = statement(
  'deployments.insert',
  `INSERT INTO deployment (${DEPLOYMENT_COLUMNS}, version) VALUES ($1, $2, $3, $4, $5, $6, $7, ${nextVersion('deployment')})
   ON CONFLICT (id) DO NOTHING`,
)

/** false: the id is taken. */
export async function createDeployment(tx: Queryable, deployment: Deployment): Promise<boolean> {
  const { id, accountId, state, workers, idleAfterMs, createdAt, changedAt } = deployment
  const values = [id, accountId, state, workers, idleAfterMs, createdAt.getTime(), changedAt.getTime()]
  await lockVersions(tx, 'deployment')
  return (await tx.run(INSERT, values)) === 1
}

// Submits into its pool hold the row FOR KEY SHARE. A move waits for those that began before it, and then counts their jobs.
const LOCK = statement('deployments.lock', 'SELECT 1 FROM deployment WHERE id = $1 FOR UPDATE')
const MOVE = statement<DeploymentRow>(
  'deployments.move',
  `UPDATE deployment SET state = $2, changed_at = $3, version = ${nextVersion('deployment')}
   WHERE id = $1 AND state = ANY($4::text[]) RETURNING ${DEPLOYMENT_COLUMNS}`,
)

export async function moveDeployment(tx: Queryable, move: DeploymentMove): Promise<Deployment | null> {
  const { id, from, to, at, onlyWhenEmpty = false } = move
  await lockVersions(tx, 'deployment')
  await tx.run(LOCK, [id])
  if (onlyWhenEmpty && (await readPoolLoads(tx, [id])).some(({ queued, running }) => queued + running > 0)) return null
  const row = await tx.get(MOVE, [id, to, at.getTime(), from])
  return row === undefined ? null : toDeployment(row)
}

const LOCK_POOLS = statement<[pool: string]>(
  'deployments.lock_pools',
  `SELECT id FROM (
     SELECT id, state FROM deployment WHERE id = ANY($1::text[]) ORDER BY id FOR KEY SHARE) AS locked WHERE state <> 'ready'`,
)

/**
 * Which of these pools take no jobs now because their deployment is not ready. The others stay open until the transaction ends.
 * To be asked before any other lock is taken.
 */
export async function findClosedPools(tx: Queryable, pools: readonly string[]): Promise<ReadonlySet<string>> {
  // Most jobs go to the common pool, which belongs to no deployment: they cost no statement.
  const deployed = [...new Set(pools)].filter((pool) => pool !== 'default')
  if (deployed.length === 0) return new Set()
  return new Set((await tx.all(LOCK_POOLS, [deployed])).map(([pool]) => pool))
}

const CONFIGURE = statement<DeploymentRow>(
  'deployments.configure',
  `UPDATE deployment SET workers = $2, idle_after = $3, changed_at = $4, version = ${nextVersion('deployment')}
   WHERE id = $1 RETURNING ${DEPLOYMENT_COLUMNS}`,
)

export async function configureDeployment(
  tx: Queryable,
  { id, workers, idleAfterMs, at }: DeploymentSettings,
): Promise<Deployment | null> {
  await lockVersions(tx, 'deployment')
  const row = await tx.get(CONFIGURE, [id, workers, idleAfterMs, at.getTime()])
  return row === undefined ? null : toDeployment(row)
}

const LIST = statement<DeploymentRow>('deployments.list', `SELECT ${DEPLOYMENT_COLUMNS} FROM deployment ORDER BY id`)

export async function listDeployments(db: Queryable): Promise<Deployment[]> {
  return (await db.all(LIST)).map(toDeployment)
}

const CHANGED = statement<[...DeploymentRow, version: number]>(
  'deployments.changed',
  `SELECT ${DEPLOYMENT_COLUMNS}, version FROM deployment WHERE version > $1 ORDER BY version LIMIT $2`,
)

export async function listChangedDeployments(
  db: Queryable,
  version: number,
  limit: number,
): Promise<VersionedDeployment[]> {
  return (await db.all(CHANGED, [version, limit])).map((row) => {
    const [id, accountId, state, workers, idleAfterMs, createdAt, changedAt, of] = row
    return { deployment: toDeployment([id, accountId, state, workers, idleAfterMs, createdAt, changedAt]), version: of }
  })
}

const COUNTED = 1000
// Waiting jobs are counted up to a bound, in the order of the index: else a pool where none wait would be sought by walking the
// table. Held ones are never more than there are workers, so all of them are counted at once.
const LOADS = statement<[pool: string, queued: number, running: number]>(
  'deployments.loads',
  `WITH held AS MATERIALIZED (
     SELECT pool, count(*) AS jobs FROM job WHERE status IN ('running', 'canceling') AND pool = ANY($1::text[]) GROUP BY pool
   )
   SELECT asked.pool,
     (SELECT count(*) FROM (
        SELECT 1 FROM job WHERE status = 'queued' AND job.pool = asked.pool ORDER BY pool, needs, account_id LIMIT ${COUNTED}
      ) AS waiting),
     least(coalesce(held.jobs, 0), ${COUNTED})
   FROM unnest($1::text[]) WITH ORDINALITY AS asked (pool, place) LEFT JOIN held ON held.pool = asked.pool
   ORDER BY asked.place`,
)

export async function readPoolLoads(db: Queryable, pools: readonly string[]): Promise<PoolLoad[]> {
  return (await db.all(LOADS, [pools])).map(([pool, queued, running]) => ({ pool, queued, running }))
}
