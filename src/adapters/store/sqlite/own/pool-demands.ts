/** How much work waits in a pool and for how long, for whoever decides how many workers it needs. */
import type { DeploymentStore, PoolDemand, PoolLoad } from '../../../../domain/deployments/deployment-store.ts'
import { HELD_LIMIT } from '../../rows/jobs/job.ts'
import { all, defineStore, get, read, type Steps } from '../../statements/operation.ts'
import { query, sqliteOnly } from '../../statements/statement.ts'
import { countPools } from '../../stores/deployment-store.ts'
import { integer, shape, text } from '../../tables/table.ts'

const COUNTED = 1000
const MAX_QUEUES = 256
const ABOVE_ALL = 2 ** 31

const WAITING = query(
  'demands.waiting',
  shape({ accountId: text(), room: integer() }),
  sqliteOnly(`SELECT id AS account_id, max(0, max_running - running) AS room
    FROM account INDEXED BY account_waiting WHERE queued > 0 LIMIT ${MAX_QUEUES}`),
)
const QUEUE = `FROM job INDEXED BY job_queue WHERE status = 'queued' AND account_id = :accountId AND pool = :pool
  AND priority > ${HELD_LIMIT}`
const FIRST = query(
  'demands.first',
  shape({ priority: integer(), createdAt: integer() }),
  sqliteOnly(`SELECT priority, created_at ${QUEUE} AND priority < :below ORDER BY priority DESC, seq LIMIT 1`),
)
const COUNT = query(
  'demands.count',
  shape({ jobs: integer() }),
  sqliteOnly(`SELECT count(*) AS jobs FROM (SELECT 1 ${QUEUE} LIMIT :limit)`),
)

interface Queue {
  readonly accountId: string
  readonly pool: string
}

/** When the first job of each priority was submitted, until all are seen or the steps are used up. */
function* oldestOf(queue: Queue, maxSteps: number): Steps<{ readonly oldest: number; readonly steps: number }> {
  let [below, oldest, steps] = [ABOVE_ALL, Number.POSITIVE_INFINITY, 0]
  while (steps < maxSteps) {
    const first = yield* get(FIRST, { ...queue, below })
    if (first === undefined) break
    steps++
    below = first.priority
    oldest = Math.min(oldest, first.createdAt)
  }
  return { oldest, steps }
}

type Accounts = readonly { readonly accountId: string; readonly room: number }[]

function* demandOf(load: PoolLoad, accounts: Accounts): Steps<PoolDemand> {
  const { pool } = load
  let [counted, runnable, oldest, left] = [0, 0, Number.POSITIVE_INFINITY, MAX_QUEUES]
  for (const { accountId, room } of accounts) {
    const found = yield* oldestOf({ accountId, pool }, left)
    left -= found.steps
    oldest = Math.min(oldest, found.oldest)
    if (found.steps === 0) continue
    const { jobs } = (yield* get(COUNT, { accountId, pool, limit: COUNTED - counted })) ?? { jobs: 0 }
    counted += jobs
    runnable += Math.min(jobs, room)
  }
  return { ...load, runnable, oldestQueuedAt: Number.isFinite(oldest) ? new Date(oldest) : null }
}

/** Walks the first entry of each queue (an account and a priority), and as many entries of an account as it may run. */
export const poolDemands = defineStore<Pick<DeploymentStore, 'demands'>>('demands', {
  demands: read(function* (pools) {
    const accounts = yield* all(WAITING)
    const demands: PoolDemand[] = []
    for (const load of yield* countPools(pools)) demands.push(yield* demandOf(load, accounts))
    return demands
  }),
})
