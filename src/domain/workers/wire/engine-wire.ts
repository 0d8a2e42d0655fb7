/** What a joined worker says of its engines. */
import type { PublishedEngine } from '../../engine/directory/engine-registry.ts'
import type { EngineStatus } from '../../engine/fleet/engine-status.ts'
import type { ObservedRelease } from '../../engine/fleet/observed-release.ts'

export interface EngineFields {
  readonly name: string
  readonly is_shared: boolean
  readonly catalog_hash: string | null
  readonly state: EngineStatus['state']
  readonly reason: string | null
  readonly is_supervised: boolean
  readonly concurrency: number
  readonly running: number
  readonly node_classes: number
  readonly weights: number
  readonly loaded_weights: readonly string[]
  readonly version: string | null
  /** Left out by an older worker, and where there is none. */
  readonly observed_release?: ObservedRelease
  readonly reconnects: number
  readonly memory_bytes: number | null
  readonly started_at: string | null
  readonly last_error: { readonly message: string; readonly at: string } | null
  readonly counts: EngineStatus['counts']
}

export function writeEngine({ isShared, catalogHash, status }: PublishedEngine): EngineFields {
  const { id, state, reason, concurrency, running, weights, version, reconnects, counts, lastError } = status
  return {
    ...{ name: id, state, reason, concurrency, running, weights, version, reconnects, counts },
    ...(status.observed !== null && { observed_release: status.observed }),
    is_shared: isShared,
    catalog_hash: catalogHash,
    is_supervised: status.isSupervised,
    node_classes: status.nodeClasses,
    loaded_weights: status.loadedWeights,
    memory_bytes: status.memoryBytes,
    started_at: status.startedAt?.toISOString() ?? null,
    last_error: lastError === null ? null : { message: lastError.message, at: lastError.at.toISOString() },
  }
}

/** `id`: under which the service knows it. */
export function readEngine(fields: EngineFields, id: string): PublishedEngine {
  const { state, reason, concurrency, running, weights, version, reconnects, counts, last_error: lastError } = fields
  return {
    isShared: fields.is_shared,
    catalogHash: fields.catalog_hash,
    status: {
      ...{ id, state, reason, concurrency, running, weights, version, reconnects, counts },
      observed: fields.observed_release ?? null,
      isSupervised: fields.is_supervised,
      nodeClasses: fields.node_classes,
      loadedWeights: fields.loaded_weights,
      memoryBytes: fields.memory_bytes,
      startedAt: fields.started_at === null ? null : new Date(fields.started_at),
      lastError: lastError === null ? null : { message: lastError.message, at: new Date(lastError.at) },
    },
  }
}
