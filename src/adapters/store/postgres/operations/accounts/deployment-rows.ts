/** Pools of deployments that take no jobs now. */
import { type Queryable, statement } from '../../database/statement.ts'

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
