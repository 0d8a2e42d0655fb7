/** How much work waits in a pool and for how long, for whoever decides how many workers it needs. */
import type { DeploymentStore } from '../../../../domain/deployments/deployment-store.ts'
import { all, defineStore, read } from '../../statements/operation.ts'
import { postgresOnly, query } from '../../statements/statement.ts'
import { countPools } from '../../stores/deployment-store.ts'
import { integer, moment, shape, text } from '../../tables/table.ts'

const COUNTED = 1000
const MAX_QUEUES = 256

const QUEUED = `status = 'queued' AND pool = head.pool`
const COLUMNS = 'needs, account_id, priority, created_at'

// Steps along `job_lane` from the first job of one queue (the same needs, account and priority) to that of the next: a backlog of
// any length costs one step per queue. Of an account no more jobs are counted than it may run.
const DEMANDS = query(
  'deployments.demands',
  shape({ pool: text(), oldestQueuedAt: moment(), runnable: integer() }),
  postgresOnly(`WITH RECURSIVE head AS (
     SELECT asked.pool, first.*, 1 AS depth FROM unnest(:pools::text[]) AS asked (pool) CROSS JOIN LATERAL (
       SELECT ${COLUMNS} FROM job WHERE status = 'queued' AND pool = asked.pool
       ORDER BY needs, account_id, priority DESC, seq LIMIT 1) AS first
     UNION ALL
     SELECT head.pool, next.needs, next.account_id, next.priority, next.created_at, head.depth + 1
     FROM head CROSS JOIN LATERAL (
       SELECT * FROM (
         (SELECT ${COLUMNS}, 0 AS step FROM job
          WHERE ${QUEUED} AND needs = head.needs AND account_id = head.account_id AND priority < head.priority
          ORDER BY priority DESC, seq LIMIT 1)
         UNION ALL
         (SELECT ${COLUMNS}, 1 FROM job
          WHERE ${QUEUED} AND (needs, account_id) > (head.needs, head.account_id)
          ORDER BY needs, account_id, priority DESC, seq LIMIT 1)
       ) AS either ORDER BY step LIMIT 1) AS next
     WHERE head.depth < ${MAX_QUEUES}
   ),
   waiting AS (SELECT pool, account_id, min(created_at) AS oldest FROM head GROUP BY pool, account_id)
   SELECT waiting.pool, min(waiting.oldest) AS oldest_queued_at, sum((
     SELECT count(*) FROM (
       SELECT 1 FROM job WHERE status = 'queued' AND job.account_id = waiting.account_id AND job.pool = waiting.pool
       LIMIT least(greatest(load.max_running - load.running, 0), ${COUNTED})) AS counted)) AS runnable
   FROM waiting CROSS JOIN LATERAL (
     SELECT running, max_running FROM account_load WHERE account_load.account_id = waiting.account_id OFFSET 0) AS load
   GROUP BY waiting.pool`),
)

export const poolDemands = defineStore<Pick<DeploymentStore, 'demands'>>('demands', {
  demands: read(function* (pools) {
    const loads = yield* countPools(pools)
    if (loads.length === 0) return []
    const waiting = new Map((yield* all(DEMANDS, { pools })).map((found) => [found.pool, found]))
    return loads.map((load) => {
      const found = waiting.get(load.pool)
      const runnable = Math.min(found?.runnable ?? 0, load.queued)
      return { ...load, runnable, oldestQueuedAt: found?.oldestQueuedAt ?? null }
    })
  }),
})
