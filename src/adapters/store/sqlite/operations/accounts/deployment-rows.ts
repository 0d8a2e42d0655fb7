/** Deployments and the load of their pools. */
import type { DatabaseSync } from 'node:sqlite'
import type { Deployment } from '../../../../../domain/deployments/deployment.ts'
import type {
  DeploymentMove,
  DeploymentSettings,
  PoolLoad,
  VersionedDeployment,
} from '../../../../../domain/deployments/deployment-store.ts'
import { DEPLOYMENT_COLUMNS, type DeploymentRow, toDeployment } from '../../../rows/deployment-row.ts'
import { prepareRows } from '../statement.ts'

interface VersionQuery {
  readonly version: number
  readonly limit: number
}

const NEXT_VERSION = '(SELECT coalesce(max(version), 0) + 1 FROM deployment)'

export function prepareCreateDeployment(database: DatabaseSync): (deployment: Deployment) => boolean {
  const insert = database.prepare(`
    INSERT INTO deployment (${DEPLOYMENT_COLUMNS}, version) VALUES (?, ?, ?, ?, ?, ?, ?, ${NEXT_VERSION}) ON CONFLICT (id) DO NOTHING`)
  return ({ id, accountId, state, workers, idleAfterMs, createdAt, changedAt }) => {
    const times = [createdAt.getTime(), changedAt.getTime()]
    return insert.run(id, accountId, state, workers, idleAfterMs, ...times).changes === 1
  }
}

export function prepareMoveDeployment(database: DatabaseSync): (move: DeploymentMove) => Deployment | null {
  const update = prepareRows<DeploymentRow>(
    database,
    `UPDATE deployment SET state = ?2, changed_at = ?3, version = ${NEXT_VERSION}
     WHERE id = ?1 AND state IN (SELECT value FROM json_each(?4)) RETURNING ${DEPLOYMENT_COLUMNS}`,
  )
  const loads = preparePoolLoads(database)
  return ({ id, from, to, at, onlyWhenEmpty = false }) => {
    if (onlyWhenEmpty && loads([id]).some(({ queued, running }) => queued + running > 0)) return null
    const row = update.get(id, to, at.getTime(), JSON.stringify(from))
    return row === undefined ? null : toDeployment(row)
  }
}

export function prepareConfigureDeployment(
  database: DatabaseSync,
): (settings: DeploymentSettings) => Deployment | null {
  const update = prepareRows<DeploymentRow>(
    database,
    `UPDATE deployment SET workers = ?2, idle_after = ?3, changed_at = ?4, version = ${NEXT_VERSION}
     WHERE id = ?1 RETURNING ${DEPLOYMENT_COLUMNS}`,
  )
  return ({ id, workers, idleAfterMs, at }) => {
    const row = update.get(id, workers, idleAfterMs, at.getTime())
    return row === undefined ? null : toDeployment(row)
  }
}

export function prepareListDeployments(database: DatabaseSync): (input: null) => Deployment[] {
  const select = prepareRows<DeploymentRow>(database, `SELECT ${DEPLOYMENT_COLUMNS} FROM deployment ORDER BY id`)
  return () => select.all().map(toDeployment)
}

export function prepareChangedDeployments(database: DatabaseSync): (query: VersionQuery) => VersionedDeployment[] {
  const select = prepareRows<[...DeploymentRow, version: number]>(
    database,
    `SELECT ${DEPLOYMENT_COLUMNS}, version FROM deployment WHERE version > ? ORDER BY version LIMIT ?`,
  )
  return ({ version, limit }) =>
    select.all(version, limit).map((row) => {
      const [id, accountId, state, workers, idleAfter, createdAt, changedAt, of] = row
      return { deployment: toDeployment([id, accountId, state, workers, idleAfter, createdAt, changedAt]), version: of }
    })
}

/** Whether a submit into this pool is to be refused: it belongs to a deployment that takes no jobs now. */
export function prepareIsPoolClosed(database: DatabaseSync): (pool: string) => boolean {
  const select = prepareRows<[number]>(database, `SELECT 1 FROM deployment WHERE id = ? AND state <> 'ready'`)
  // Most jobs go to the common pool, which belongs to no deployment: they cost no statement.
  return (pool) => pool !== 'default' && select.get(pool) !== undefined
}

const COUNTED = 1000
// As the partial index states it: without these very words it would not be used.
const IS_LIVE = `pool <> 'default' AND status IN ('queued', 'running', 'canceling')`

/** Walks at most `COUNTED` entries per pool and state. */
export function preparePoolLoads(database: DatabaseSync): (pools: readonly string[]) => PoolLoad[] {
  const countIn = (where: string) =>
    prepareRows<[number]>(database, `SELECT count(*) FROM (SELECT 1 FROM job ${where} LIMIT ${COUNTED})`)
  const waiting = countIn(`INDEXED BY job_pool_live WHERE ${IS_LIVE} AND pool = ? AND status = 'queued'`)
  const held = countIn(`INDEXED BY job_pool_live WHERE ${IS_LIVE} AND pool = ? AND status <> 'queued'`)
  // Accounts that wait there, at least as many jobs: the queue itself has no order by pool.
  const commonWaiting = prepareRows<[number]>(
    database,
    `SELECT count(*) FROM account INDEXED BY account_waiting WHERE queued > 0 AND EXISTS (
       SELECT 1 FROM job INDEXED BY job_queue
       WHERE status = 'queued' AND account_id = account.id AND pool = 'default')`,
  )
  const commonHeld = countIn(`INDEXED BY job_lease WHERE status IN ('running', 'canceling') AND pool = 'default'`)
  return (pools) =>
    pools.map((pool) => {
      const isCommon = pool === 'default'
      const queued = (isCommon ? commonWaiting.get() : waiting.get(pool))?.[0] ?? 0
      const running = (isCommon ? commonHeld.get() : held.get(pool))?.[0] ?? 0
      return { pool, queued, running }
    })
}
