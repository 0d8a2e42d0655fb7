/**
 * Looks after deployments on releases: brings their engines up and down, says how far each has come, lands updates whose copy is ready
 * and ends copies that nobody needs any more. Everything follows from what the store says, so a process that dies at any moment leaves
 * nothing undone that the next look, of whichever process, does not do. One process of the service does it at a time.
 */
import type { Clock } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import { readCopyPool } from '../../engine/copy-pool.ts'
import type { Deployment } from '../deployment.ts'
import type { DeploymentStore, PoolLoad } from '../deployment-store.ts'
import type { CopyEngines, WantedCopy } from './copy-engines.ts'
import { createSettling, isOlder, type OlderCopy, planCopies, shareRoom } from './copy-plan.ts'
import { createNextStep } from './next-step.ts'
import * as changes from './released-changes.ts'
import { pendingPool, type ReleasedDeployment, servingPool } from './released-deployment.ts'
import type { DeploymentChange, ReleasedStore } from './released-store.ts'

interface KeeperDeps {
  readonly store: ReleasedStore
  readonly loads: DeploymentStore['loads']
  /** The copies of a deployment, as pools. */
  readonly copiesOf: (deploymentId: string) => readonly Deployment[]
  readonly engines: CopyEngines
  /** Those who claim jobs of a pool here. */
  readonly workers: {
    start(pool: string, workers: number): Promise<void>
    stop(pool: string, options: { readonly deadline: Date }): Promise<void>
  }
  /** Something was written: pools are read again. */
  readonly onChanged: () => Promise<void>
  readonly idleMs: number
  /** How long runs may take to finish when a deployment is stopped. */
  readonly drainMs: number
  readonly startWithinMs?: number
  readonly clock: Clock
  readonly log: Log
}

interface CopyKeeper {
  look(): Promise<void>
  /** Gives back what runs here; engines may end afterwards. */
  end(): Promise<void>
}

const MAX_STEPS = 4

interface Looked {
  readonly deployment: ReleasedDeployment
  readonly older: readonly OlderCopy[]
}

export function createCopyKeeper(deps: KeeperDeps): CopyKeeper {
  const { store, engines, clock, log } = deps
  const settling = createSettling({ idleMs: deps.idleMs, nowMs: () => clock.now().getTime() })
  const claiming = new Set<string>()
  const { advance, retireOlder } = createSteps(deps)

  async function lookAt(deployment: ReleasedDeployment): Promise<Looked> {
    const pools = deps.copiesOf(deployment.id).map(({ id }) => id)
    const others = pools.filter((pool) => pool !== servingPool(deployment) && isOlder(pool, deployment))
    if (others.length === 0) return { deployment, older: [] }
    const revisions = await store.revisions(deployment.id)
    const older = others.flatMap((pool) => {
      const past = revisions.find(({ revision }) => revision === readCopyPool(pool)?.revision)
      return past === undefined ? [] : [{ pool, releaseId: past.releaseId }]
    })
    return { deployment, older }
  }

  /** Those who claim are there before the engines are, and go after no job is claimed any more. */
  async function keepWorkers(wanted: readonly WantedCopy[], all: readonly Looked[]): Promise<void> {
    const isWanted = new Set(wanted.map(({ pool }) => pool))
    for (const { deployment, older } of all) {
      const own = [servingPool(deployment), pendingPool(deployment), ...older.map(({ pool }) => pool)]
      for (const pool of own) {
        if (pool === null || !isWanted.has(pool)) continue
        claiming.add(pool)
        await deps.workers.start(pool, deployment.max)
      }
    }
    const deadline = new Date(clock.now().getTime() + deps.drainMs)
    for (const pool of claiming) {
      if (isWanted.has(pool)) continue
      claiming.delete(pool)
      // What runs there may finish; the look must not wait for it.
      void deps.workers
        .stop(pool, { deadline })
        .catch((error) => log.error({ err: error, pool }, 'workers did not end'))
    }
  }

  return {
    async end() {
      const deadline = clock.now()
      await Promise.all([...claiming].map((pool) => deps.workers.stop(pool, { deadline })))
    },
    async look() {
      const active = await store.active()
      const looked = await Promise.all(active.map(lookAt))
      const pools = looked.flatMap(({ deployment, older }) => [
        servingPool(deployment),
        ...older.map(({ pool }) => pool),
      ])
      const loads = new Map((await deps.loads(pools)).map((load): [string, PoolLoad] => [load.pool, load]))
      const loadOf = (pool: string) => loads.get(pool) ?? { queued: 0, running: 0 }
      const { settle } = settling
      const planned = looked.flatMap(({ deployment, older }) => planCopies(deployment, { older, loadOf, settle }))
      settling.forgetOthers(new Set(planned.map(({ pool }) => pool)))
      const wanted = shareRoom(planned, engines.room)
      await keepWorkers(wanted, looked)
      await engines.keep(wanted)
      for (const { deployment, older } of looked) {
        try {
          await advance(deployment, older)
          await retireOlder(deployment, older, loadOf)
        } catch (error) {
          log.error(
            { err: error, deployment: deployment.id },
            'a deployment could not be looked after; the next look tries again',
          )
        }
      }
    },
  }
}

/** How far each deployment has come. */
function createSteps({ store, copiesOf, engines, onChanged, startWithinMs, clock }: KeeperDeps) {
  const nextChange = createNextStep({ engines, startWithinMs, clock })

  /** The deployment as it is then; null: somebody else was quicker, and the next look sees what they made of it. */
  async function write(change: DeploymentChange): Promise<ReleasedDeployment | null> {
    const outcome = await store.change(change)
    if (outcome.outcome !== 'changed') return null
    await onChanged()
    return outcome.deployment
  }

  async function advance(deployment: ReleasedDeployment, older: readonly OlderCopy[]): Promise<void> {
    let now: ReleasedDeployment | null = deployment
    for (let steps = 0; now !== null && steps < MAX_STEPS; steps++) {
      const change = await nextChange(now, older)
      if (change === null) return
      now = await write(change)
    }
  }

  async function retireOlder(
    { accountId, id }: ReleasedDeployment,
    older: readonly OlderCopy[],
    loadOf: (pool: string) => Pick<PoolLoad, 'queued' | 'running'>,
  ): Promise<void> {
    const open = new Set(copiesOf(id).flatMap((copy) => (copy.state === 'stopped' ? [] : [copy.id])))
    for (const { pool } of older) {
      const { queued, running } = loadOf(pool)
      if (!open.has(pool) || queued + running > 0) continue
      // As it is now: a step may just have changed it.
      const now = await store.find(accountId, id)
      if (now !== null && pool !== servingPool(now)) await write(changes.retire(now, pool, clock.now()))
    }
  }

  return { advance, retireOlder }
}
