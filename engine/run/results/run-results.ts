/**
 * The output values that a run holds on to. A result stays as long as some node of the run may still read it, and its
 * memory goes back with the last reader; what is worth keeping longer is kept by the cache.
 */
import type { MemoryLedger } from '../../tensor/memory-ledger.ts'
import type { Slot } from '../../values/value.ts'
import type { RunValues } from '../../values/value-budget.ts'
import { weighValues } from '../../values/value-weight.ts'
import { buffersOf } from './result-cache.ts'

export interface RunResults {
  outputsOf(nodeId: string): readonly Slot[] | null
  /** Throws NodeError when the run holds too much. */
  hold(nodeId: string, outputs: readonly Slot[]): void
  /** Keeps values alive until the run ends: constants of nodes made by expansion. */
  keep(values: Slot): void
  addReader(producer: string, reader: string): void
  /** The reader is done with everything that it reads. */
  readBy(reader: string, producers: readonly string[]): void
  releaseAll(): void
}

interface Held {
  readonly outputs: readonly Slot[]
  readonly buffers: ReadonlySet<SharedArrayBuffer>
  readonly plainBytes: number
}

interface RunResultsDeps {
  readonly ledger: Pick<MemoryLedger, 'retain' | 'release'>
  readonly values: RunValues
}

export function createRunResults({ ledger, values }: RunResultsDeps): RunResults {
  const held = new Map<string, Held>()
  const readers = new Map<string, Set<string>>()
  const kept: SharedArrayBuffer[] = []

  function release(nodeId: string): void {
    const result = held.get(nodeId)
    if (result === undefined) return
    held.delete(nodeId)
    for (const buffer of result.buffers) ledger.release(buffer)
    values.give(result.plainBytes)
  }

  return {
    outputsOf: (nodeId) => held.get(nodeId)?.outputs ?? null,
    hold(nodeId, outputs) {
      if (held.has(nodeId) || (readers.get(nodeId)?.size ?? 0) === 0) return
      const plainBytes = outputs.reduce((sum, slot) => sum + weighValues(slot), 0)
      values.take(plainBytes)
      const buffers = buffersOf(outputs)
      for (const buffer of buffers) ledger.retain(buffer)
      held.set(nodeId, { outputs, buffers, plainBytes })
    },
    keep(constants) {
      for (const buffer of buffersOf([constants])) {
        ledger.retain(buffer)
        kept.push(buffer)
      }
    },
    addReader(producer, reader) {
      const known = readers.get(producer)
      if (known === undefined) readers.set(producer, new Set([reader]))
      else known.add(reader)
    },
    readBy(reader, producers) {
      for (const producer of producers) {
        const waiting = readers.get(producer)
        if (waiting?.delete(reader) && waiting.size === 0) release(producer)
      }
    },
    releaseAll() {
      for (const nodeId of [...held.keys()]) release(nodeId)
      for (const buffer of kept.splice(0)) ledger.release(buffer)
      values.close()
    },
  }
}
