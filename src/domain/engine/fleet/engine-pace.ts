/**
 * How quickly an engine computes its runs, and so how many may lie ready on it. Only short runs are worth it: the pause between two of
 * them is then as long as the runs themselves. And only short ones are harmless: what lies ready is computed next, whatever comes.
 */
import { uptimeMs } from '../../../../lib/waiting/uptime.ts'

/** The work that may lie ready on an engine, beside what it computes: more than it takes to bring the next run there. */
const READY_MS = 50
const MAX_READY = 8
/** How much of the average is the latest run's. */
const SHARE_OF_LATEST = 0.25

export class EnginePace {
  readonly #readyMs: number
  #averageMs: number | null = null
  #latestAtMs = 0

  constructor(readyMs = READY_MS) {
    this.#readyMs = readyMs
  }

  begin(): void {
    this.#latestAtMs = uptimeMs()
  }

  /** `begunAtMs`: when the engine began to compute the run that it has computed now. */
  end(begunAtMs: number): void {
    const tookMs = uptimeMs() - begunAtMs
    this.#averageMs = this.#averageMs === null ? tookMs : this.#averageMs + (tookMs - this.#averageMs) * SHARE_OF_LATEST
  }

  /** A run of unknown length was broken off, or another process computes from now on. */
  forget(): void {
    this.#averageMs = null
  }

  /** How many runs may lie ready. */
  window(): number {
    const readyMs = this.#readyMs
    if (this.#averageMs === null || this.#averageMs > readyMs || uptimeMs() - this.#latestAtMs > readyMs) return 0
    return Math.min(MAX_READY, Math.ceil(readyMs / Math.max(1, this.#averageMs)))
  }
}
