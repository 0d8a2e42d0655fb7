/** An engine as both stores select it. */
import type { EngineWill } from '../../../domain/engine/directory/engine-registry.ts'
import type { EngineState } from '../../../domain/engine/fleet/engine-status.ts'

export type EngineRow = readonly [
  id: string,
  nodeId: string,
  heldUntil: number,
  isShared: number,
  catalogHash: string | null,
  state: EngineState,
  concurrency: number,
  about: string,
  seenAt: number,
  will: EngineWill,
  willNumber: number,
]
