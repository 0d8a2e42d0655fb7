/** Machines that joined and offer room for engines of releases, and what each is to have, as the store keeps both. */
import type { Clock } from '../../../lib/clock.ts'
import type { WantedCopy } from '../../domain/deployments/released/copy-engines.ts'
import type { JoinedMachine, MachinePlans } from '../../domain/deployments/released/shared-copies.ts'
import { readTarget } from '../../domain/environments/definition.ts'
import type { NodeStore } from '../../domain/service-nodes/node-store.ts'
import type { MetaStore } from '../../domain/store.ts'
import { keyIdOfNode } from '../../domain/workers/held-claims.ts'
import type { WorkerKeys } from '../../domain/workers/worker-keys.ts'

const PLAN = 'release-machines'

export function openMachinePlans(meta: Pick<MetaStore, 'readMeta' | 'changeMeta'>): MachinePlans {
  return {
    async read() {
      const text = await meta.readMeta(PLAN)
      return new Map(Object.entries(text === null ? {} : (JSON.parse(text) as Record<string, readonly WantedCopy[]>)))
    },
    async write(plan) {
      const text = JSON.stringify(Object.fromEntries(plan))
      await meta.changeMeta(PLAN, () => text)
    },
  }
}

export interface JoinedMachines {
  /** Those that are there now, and whose keys still count. */
  list(): Promise<readonly JoinedMachine[]>
  /** Keys are opened after what needs to know of machines. */
  knowKeys(keys: Pick<WorkerKeys, 'find'>): void
}

interface MachineParts {
  readonly nodes: Pick<NodeStore, 'list'>
  readonly clock: Clock
}

export function openJoinedMachines({ nodes, clock }: MachineParts): JoinedMachines {
  const known = Promise.withResolvers<Pick<WorkerKeys, 'find'>>()
  return {
    async list() {
      const [keys, now] = [await known.promise, clock.now()]
      return (await nodes.list()).flatMap(({ id, aliveUntil, about: { machine } }) => {
        const keyId = keyIdOfNode(id)
        if (machine === undefined || keyId === null || aliveUntil <= now) return []
        if (keys.find(keyId)?.hasBuilds !== true) return []
        return [{ ...machine, id, targets: machine.targets.map(readTarget) }]
      })
    },
    knowKeys: known.resolve,
  }
}
