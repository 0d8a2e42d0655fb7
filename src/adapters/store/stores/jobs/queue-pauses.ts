/** What of a pause the claims have to know, as parts of their statements. */
import { deploymentOf } from '../../../../domain/engine/copy-pool.ts'
import { query } from '../../statements/statement.ts'
import { queuePause } from '../../tables/service.ts'
import { pick } from '../../tables/table.ts'

/** The service, or the pool with the deployment that it belongs to. Its parameters are `pausedNames`. */
export const PAUSED = `SELECT 1 FROM queue_pause WHERE scope = 'service' OR (scope = 'pool' AND name IN (:pausedPool, :pausedDeployment))`

export function pausedNames(pool: string) {
  return { pausedPool: pool, pausedDeployment: deploymentOf(pool) }
}

/** Asked once by a statement, however many accounts wait. */
export const PAUSED_ACCOUNTS = `SELECT name FROM queue_pause WHERE scope IN ('account', 'own')`

export const FIND_PAUSED = query(
  'queue.findPaused',
  pick(queuePause, 'name'),
  `SELECT name FROM queue_pause WHERE scope = 'service' OR (scope = 'pool' AND name IN (:pausedPool, :pausedDeployment)) LIMIT 1`,
)
