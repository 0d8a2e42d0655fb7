/**
 * How much plain values (texts, lists, numbers) all runs together, and each of them, may hold at a time. They lie in the heap of
 * the engine thread, which all runs share: the run that would fill it fails, and the thread lives on. What tensors and files
 * take is counted by the memory ledger.
 */
import { NodeError } from '../node/node-error.ts'

export interface ValueBudget {
  open(): RunValues
}

/** What one run holds. */
export interface RunValues {
  /** Throws NodeError beyond the limits. */
  take(bytes: number): void
  give(bytes: number): void
  /** The run is over: everything is given back. */
  close(): void
}

export interface ValueLimits {
  readonly totalBytes: number
  readonly runBytes: number
}

// Every run may hold this much, even when others have taken everything else; an ordinary job never needs more.
const GUARANTEED_BYTES = 4_194_304

export function createValueBudget({ totalBytes, runBytes }: ValueLimits): ValueBudget {
  let heldByAll = 0

  function open(): RunValues {
    let held = 0
    return {
      take(bytes) {
        const isCrowded = heldByAll + bytes > totalBytes && held + bytes > GUARANTEED_BYTES
        if (isCrowded || held + bytes > runBytes) throw tooMuch(isCrowded ? totalBytes : runBytes, isCrowded)
        held += bytes
        heldByAll += bytes
      },
      give(bytes) {
        held -= bytes
        heldByAll -= bytes
      },
      close() {
        heldByAll -= held
        held = 0
      },
    }
  }
  return { open }
}

function tooMuch(limit: number, isCrowded: boolean): NodeError {
  const whose = isCrowded ? 'all running jobs together' : 'a running job'
  return new NodeError(
    'MemoryError',
    `${whose} may hold ${Math.ceil(limit / 1_048_576)} MiB of texts and lists. Use shorter ones, or fewer at a time`,
  )
}
