/** How an engine of the pool is shown to the operator. */
import type { EngineStatus } from '../../domain/engine/fleet/engine-status.ts'

export function toEngineView(status: EngineStatus) {
  const { counts, lastError } = status
  return {
    id: status.id,
    state: status.state,
    reason: status.reason,
    supervised: status.isSupervised,
    concurrency: status.concurrency,
    running: status.running,
    node_classes: status.nodeClasses,
    weights: status.weights,
    loaded_weights: status.loadedWeights,
    version: status.version,
    reconnects: status.reconnects,
    memory_bytes: status.memoryBytes,
    started_at: status.startedAt?.toISOString() ?? null,
    last_error: lastError === null ? null : { message: lastError.message, at: lastError.at.toISOString() },
    jobs: counts.jobs,
    failures: counts.failures,
    losses: counts.losses,
    weight_switches: counts.switches,
    recycles: counts.recycles,
  }
}
