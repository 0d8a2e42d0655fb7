/** How much work waits in a pool and for how long, for whoever decides how many workers it needs. */
import type { DatabaseSync } from 'node:sqlite'
import type { PoolDemand } from '../../../../../domain/deployments/deployment-store.ts'
import { prepareRows } from '../statement.ts'
import { preparePoolLoads } from './deployment-rows.ts'

const COUNTED = 1000
const MAX_QUEUES = 256
const ABOVE_ALL = 2 ** 31

/** Walks the first entry of each queue (an account and a priority), and as many entries of an account as it may run. */
export function preparePoolDemands(database: DatabaseSync): (pools: readonly string[]) => PoolDemand[] {
  const loads = preparePoolLoads(database)
  const waiting = prepareRows<[accountId: string, room: number]>(
    database,
    `SELECT id, max(0, max_running - running) FROM account INDEXED BY account_waiting WHERE queued > 0 LIMIT ${MAX_QUEUES}`,
  )
  const queue = `FROM job INDEXED BY job_queue WHERE status = 'queued' AND account_id = ? AND pool = ?`
  const first = prepareRows<[priority: number, createdAt: number]>(
    database,
    `SELECT priority, created_at ${queue} AND priority < ? ORDER BY priority DESC, seq LIMIT 1`,
  )
  const count = prepareRows<[number]>(database, `SELECT count(*) FROM (SELECT 1 ${queue} LIMIT ?)`)

  /** When the first job of each priority was submitted, until all are seen or the steps are used up. */
  function oldestOf(accountId: string, pool: string, maxSteps: number) {
    let [below, oldest, steps] = [ABOVE_ALL, Number.POSITIVE_INFINITY, 0]
    while (steps < maxSteps) {
      const row = first.get(accountId, pool, below)
      if (row === undefined) break
      steps++
      below = row[0]
      oldest = Math.min(oldest, row[1])
    }
    return { oldest, steps }
  }

  function demandOf(pool: string, running: number, accounts: readonly [string, number][]): PoolDemand {
    let [queued, runnable, oldest, left] = [0, 0, Number.POSITIVE_INFINITY, MAX_QUEUES]
    for (const [accountId, room] of accounts) {
      const found = oldestOf(accountId, pool, left)
      left -= found.steps
      oldest = Math.min(oldest, found.oldest)
      if (found.steps === 0) continue
      const jobs = count.get(accountId, pool, COUNTED - queued)?.[0] ?? 0
      queued += jobs
      runnable += Math.min(jobs, room)
    }
    return { pool, queued, running, runnable, oldestQueuedAt: Number.isFinite(oldest) ? new Date(oldest) : null }
  }

  return (pools) => {
    const accounts = waiting.all()
    return loads(pools).map(({ pool, running }) => demandOf(pool, running, accounts))
  }
}
