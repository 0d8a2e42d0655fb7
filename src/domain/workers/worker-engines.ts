/**
 * The engines of joined workers in the registry of all, each under a name that contains its worker's key; and the worker itself
 * among the processes of the service, so that its engines are taken over when it is gone.
 */
import { hash as hashOf } from 'node:crypto'
import type { Clock } from '../../../lib/clock.ts'
import { readCatalog } from '../engine/directory/catalog-text.ts'
import type { EngineDirectory } from '../engine/directory/engine-directory.ts'
import type { EngineRegistry, EngineWill } from '../engine/directory/engine-registry.ts'
import { ServiceError } from '../errors.ts'
import type { NodeStore } from '../service-nodes/node-store.ts'
import { type EngineFields, readEngine } from './wire/engine-wire.ts'
import type { WorkerIdentity } from './worker-keys.ts'
import { toEngineId, toEngineName, toInstanceId, toNodeId } from './worker-leases.ts'

export interface WorkerBeat {
  readonly instanceId: string
  readonly version: string
  readonly host: string
  /** How many workers it has, by pool. */
  readonly workers: Readonly<Record<string, number>>
}

interface EngineWish {
  readonly name: string
  readonly will: EngineWill
  readonly number: number
}

export interface WorkerEngines {
  /** Says that a process lives. Answers the processes of the same key that do. */
  beat(worker: WorkerIdentity, beat: WorkerBeat): Promise<readonly string[]>
  leave(worker: WorkerIdentity, instanceId: string): Promise<void>
  /** Names of those that the process holds then. Throws not_found for a catalog that has not been put. */
  publish(worker: WorkerIdentity, instanceId: string, engines: readonly EngineFields[]): Promise<readonly string[]>
  /** What operators want of the worker's engines. */
  wishes(worker: WorkerIdentity): Promise<readonly EngineWish[]>
  /** Throws hash_mismatch, invalid_request. */
  putCatalog(hash: string, text: string): Promise<void>
}

export interface WorkerEnginesDeps {
  readonly registry: Pick<EngineRegistry, 'publish' | 'list' | 'putCatalog' | 'findCatalogs' | 'leave'>
  readonly nodes: Pick<NodeStore, 'beat' | 'leave' | 'list'>
  readonly directory: Pick<EngineDirectory, 'status'>
  /** Reads the registry again. */
  readonly follow: () => Promise<void>
  readonly clock: Clock
  /** How long a process counts as alive, and an engine as held, without a further word. */
  readonly holdMs: number
  /** The process that serves the worker: whoever watches its jobs is told by it. */
  readonly nodeId: string
}

export function createWorkerEngines(deps: WorkerEnginesDeps): WorkerEngines {
  const { registry, nodes, directory, clock, holdMs } = deps
  const until = (now: Date) => new Date(now.getTime() + holdMs)

  async function mustHaveCatalogs(engines: readonly EngineFields[]): Promise<void> {
    const hashes = [...new Set(engines.flatMap(({ catalog_hash: hash }) => hash ?? []))]
    const found = await registry.findCatalogs(hashes)
    const missing = hashes.find((hash) => !found.has(hash))
    if (missing === undefined) return
    throw new ServiceError('not_found', 'put what the engine can run first', { details: { catalog_hash: missing } })
  }

  return {
    async beat(worker, { instanceId, version, host, workers }) {
      const now = clock.now()
      const own = Object.fromEntries(Object.entries(workers).filter(([pool]) => worker.pools.has(pool)))
      const about = { version, host, role: 'worker' as const, workers: own, via: deps.nodeId }
      await nodes.beat({ id: toNodeId(worker, instanceId), now, aliveUntil: until(now), about })
      const live = (await nodes.list()).filter(({ aliveUntil }) => aliveUntil > now)
      return live.flatMap(({ id }) => toInstanceId(worker, id) ?? [])
    },
    async leave(worker, instanceId) {
      const nodeId = toNodeId(worker, instanceId)
      await registry.leave(nodeId)
      await nodes.leave(nodeId)
    },
    async publish(worker, instanceId, engines) {
      await mustHaveCatalogs(engines)
      const now = clock.now()
      const held = await registry.publish({
        nodeId: toNodeId(worker, instanceId),
        engines: engines.map((fields) => readEngine(fields, toEngineId(worker, fields.name))),
        now,
        until: until(now),
        takesLapsed: true,
      })
      // Its first claim comes soon, and must find it known.
      const known = new Set(directory.status().map(({ id }) => id))
      if (held.some((id) => !known.has(id))) await deps.follow()
      return held.map((id) => toEngineName(worker, id))
    },
    async wishes(worker) {
      const suffix = toEngineId(worker, '')
      return (await registry.list())
        .filter(({ status: { id } }) => id.endsWith(suffix))
        .map(({ status: { id }, will, willNumber }) => ({ name: toEngineName(worker, id), will, number: willNumber }))
    },
    async putCatalog(hash, text) {
      if (hashOf('sha256', text, 'base64url') !== hash) {
        throw new ServiceError('hash_mismatch', 'the catalog does not have the hash that was said')
      }
      try {
        readCatalog(text).catalog.classTypes()
      } catch (cause) {
        throw new ServiceError('invalid_request', 'this is no catalog of node classes', { cause })
      }
      await registry.putCatalog(hash, text)
    },
  }
}
