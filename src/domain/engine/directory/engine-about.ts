/** The state of an engine as text, for a registry: what stands in columns of its own is left out. */
import type { EngineCounts, EngineStatus } from '../fleet/engine-status.ts'
import type { ObservedRelease } from '../fleet/observed-release.ts'

const NO_COUNTS: EngineCounts = { jobs: 0, failures: 0, losses: 0, switches: 0, recycles: 0 }

export function writeEngineAbout(status: EngineStatus): string {
  const { id: _id, state: _state, concurrency: _concurrency, ...about } = status
  return JSON.stringify(about)
}

type EngineColumns = Pick<EngineStatus, 'id' | 'state' | 'concurrency'>

/** What an older or newer version did not write is unknown, not wrong. */
export function readEngineAbout(columns: EngineColumns, text: string): EngineStatus {
  const about = JSON.parse(text) as Partial<Record<keyof EngineStatus, unknown>>
  const lastError = about.lastError as { readonly message: string; readonly at: string } | null | undefined
  return {
    ...columns,
    reason: (about.reason as string | undefined) ?? null,
    isSupervised: about.isSupervised === true,
    running: (about.running as number | undefined) ?? 0,
    nodeClasses: (about.nodeClasses as number | undefined) ?? 0,
    weights: (about.weights as number | undefined) ?? 0,
    loadedWeights: (about.loadedWeights as string[] | undefined) ?? [],
    version: (about.version as string | undefined) ?? null,
    observed: (about.observed as ObservedRelease | undefined) ?? null,
    reconnects: (about.reconnects as number | undefined) ?? 0,
    memoryBytes: (about.memoryBytes as number | undefined) ?? null,
    startedAt: typeof about.startedAt === 'string' ? new Date(about.startedAt) : null,
    lastError: lastError == null ? null : { message: lastError.message, at: new Date(lastError.at) },
    counts: { ...NO_COUNTS, ...(about.counts as Partial<EngineCounts> | undefined) },
  }
}
