/**
 * How much plain values (texts, lists, numbers) all runs together, and each of them, may hold at a time. They lie in the heap of
 * the engine thread, which all runs share: whoever would fill it fails, and the thread stays. What tensors and files take is the
 * memory ledger's business.
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

// So much every run may have, also when others have taken everything else: an ordinary job never needs more.
const SURE_BYTES = 4_194_304

export function createValueBudget({ totalBytes, runBytes }: ValueLimits): ValueBudget {
  let heldByAll = 0

  function open(): RunValues {
    let held = 0
    return {
      take(bytes) {
        const isCrowded = heldByAll + bytes > totalBytes && held + bytes > SURE_BYTES
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
