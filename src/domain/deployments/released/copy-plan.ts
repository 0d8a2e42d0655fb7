/**
 * Which engines the copies of a deployment need now, as pure rules. A copy that is tried comes first, because that is short; then copies
 * with jobs that were sent before an update; then the copy that serves. So where there is room for one engine only, an update takes it
 * over for a moment, the jobs of the old release end before those of the new one begin, and no submit is refused.
 */
import { readCopyPool } from '../../engine/copy-pool.ts'
import type { PoolLoad } from '../deployment-store.ts'
import type { WantedCopy } from './copy-engines.ts'
import { holdsCompute, isServing, pendingPool, type ReleasedDeployment, servingPool } from './released-deployment.ts'

interface PlannedCopy extends WantedCopy {
  /** Lower ones first. */
  readonly order: 0 | 1 | 2
}

/** A copy of an earlier revision. */
export interface OlderCopy {
  readonly pool: string
  readonly releaseId: string
}

interface PlanContext {
  readonly older: readonly OlderCopy[]
  readonly loadOf: (pool: string) => Pick<PoolLoad, 'queued' | 'running'>
  /** How many engines a pool with so much work keeps, after what was needed of late. */
  readonly settle: (pool: string, needed: number) => number
}

export function planCopies(deployment: ReleasedDeployment, context: PlanContext): PlannedCopy[] {
  const { loadOf, settle, older } = context
  if (!holdsCompute(deployment)) return []
  const { min, max, accountId, releaseId, gpuClass, pending } = deployment
  const serving = servingPool(deployment)
  const workOf = (pool: string) => {
    const { queued, running } = loadOf(pool)
    return queued + running
  }
  const needed = Math.min(max, Math.max(min, workOf(serving)))
  const engines = isServing(deployment) ? settle(serving, needed) : Math.max(1, min)
  const trial = pendingPool(deployment)
  return [
    ...(trial === null || pending === null
      ? []
      : [{ pool: trial, accountId, releaseId: pending.releaseId, gpuClass, engines: 1, order: 0 } as const]),
    ...older.flatMap((copy) => {
      const work = workOf(copy.pool)
      return work === 0 ? [] : [{ ...copy, accountId, gpuClass, engines: Math.min(max, work), order: 1 } as const]
    }),
    { pool: serving, accountId, releaseId, gpuClass, engines, order: 2 },
  ]
}

/**
 * Shares the room of a machine: every copy gets its first engine before any gets a second one, and in the order of the rules above.
 * A copy that gets none is still named: what its engines can run stays known.
 */
export function shareRoom(planned: readonly PlannedCopy[], room: number): WantedCopy[] {
  const byOrder = planned.toSorted((one, other) => one.order - other.order)
  const given = new Map(byOrder.map(({ pool }) => [pool, 0]))
  let left = room
  for (let round = 1; left > 0; round++) {
    const asking = byOrder.filter(({ engines }) => engines >= round)
    if (asking.length === 0) break
    for (const { pool } of asking.slice(0, left)) given.set(pool, round)
    left -= Math.min(left, asking.length)
  }
  return byOrder.map(({ order: _, ...copy }) => ({ ...copy, engines: given.get(copy.pool) ?? 0 }))
}

/** Remembers for how long less was needed: engines above it end after the idle time, and not between two jobs. */
export function createSettling({ idleMs, nowMs }: { readonly idleMs: number; readonly nowMs: () => number }) {
  const levels = new Map<string, { readonly engines: number; readonly atMs: number }>()
  return {
    settle(pool: string, needed: number): number {
      const now = nowMs()
      // The engine with which it became ready is up.
      const level = levels.get(pool) ?? { engines: Math.max(1, needed), atMs: now }
      const isIdle = now - level.atMs >= idleMs
      const next = needed >= level.engines || isIdle ? { engines: needed, atMs: now } : level
      levels.set(pool, next)
      return next.engines
    },
    forgetOthers(pools: ReadonlySet<string>): void {
      for (const pool of levels.keys()) if (!pools.has(pool)) levels.delete(pool)
    },
  }
}

export function isOlder(pool: string, { revision }: ReleasedDeployment): boolean {
  const copy = readCopyPool(pool)
  return copy !== null && copy.revision <= revision
}
