/** An engine as both stores select it. */
import { readEngineAbout } from '../../../domain/engine/directory/engine-about.ts'
import type { EngineRecord, EngineWill } from '../../../domain/engine/directory/engine-registry.ts'
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

export function toEngineRecord(row: EngineRow): EngineRecord {
  const [id, nodeId, heldUntil, isShared, catalogHash, state, concurrency, about, seenAt, will, willNumber] = row
  return {
    nodeId,
    heldUntil: new Date(heldUntil),
    isShared: isShared === 1,
    catalogHash,
    status: readEngineAbout({ id, state, concurrency }, about),
    seenAt: new Date(seenAt),
    will,
    willNumber,
  }
}
