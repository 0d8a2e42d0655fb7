/**
 * Moves of jobs may come twice, by the medium that everybody hears and over the link to the process that runs the job, and each is
 * heard once. Over the link they stand in order with everything else about the job, so where there is one, the copy of the medium
 * waits for it; not for long, because the link may be slow or about to break.
 */
import { BoundedSet } from '../../../lib/bounded-map.ts'
import type { JobChanged } from '../../domain/events/event-bus.ts'

interface MoveOrderDeps {
  deliver(notice: JobChanged): void
  readonly holdMs?: number
  readonly maxHoldMs?: number
}

interface Held {
  readonly notice: JobChanged
  readonly isArriving: () => boolean
  timer: NodeJS.Timeout
  heldMs: number
}

const HOLD_MS = 500
// While something large that was told before is still on its way.
const MAX_HOLD_MS = 30_000
const MAX_KNOWN = 20_000

export class MoveOrder implements Disposable {
  readonly #deps: Required<MoveOrderDeps>
  readonly #known = new BoundedSet<string>(MAX_KNOWN)
  readonly #held = new Map<string, Held>()

  constructor(deps: MoveOrderDeps) {
    this.#deps = { holdMs: HOLD_MS, maxHoldMs: MAX_HOLD_MS, ...deps }
  }

  /** `link`: what is known of the link over which it comes as well; null: there is none. */
  byMedium(notice: JobChanged, link: { isArriving(): boolean } | null): void {
    const key = keyOf(notice)
    if (key === null) this.#deps.deliver(notice)
    else if (this.#known.has(key) || this.#held.has(key)) return
    else if (link === null) this.#deliver(key, notice)
    else this.#held.set(key, { notice, isArriving: link.isArriving, heldMs: 0, timer: this.#wait(key) })
  }

  byLink(notice: JobChanged): void {
    const key = keyOf(notice)
    if (key === null) this.#deps.deliver(notice)
    else if (!this.#known.has(key)) this.#deliver(key, notice)
  }

  /** A link broke: whatever waited for one is delivered. */
  release(): void {
    for (const [key, { notice }] of [...this.#held]) this.#deliver(key, notice)
  }

  [Symbol.dispose](): void {
    for (const { timer } of this.#held.values()) clearTimeout(timer)
    this.#held.clear()
  }

  #wait(key: string): NodeJS.Timeout {
    const { holdMs, maxHoldMs } = this.#deps
    return setTimeout(() => {
      const held = this.#held.get(key)
      if (held === undefined) return
      held.heldMs += holdMs
      if (held.isArriving() && held.heldMs < maxHoldMs) held.timer = this.#wait(key)
      else this.#deliver(key, held.notice)
    }, holdMs)
  }

  #deliver(key: string, notice: JobChanged): void {
    const held = this.#held.get(key)
    if (held !== undefined) clearTimeout(held.timer)
    this.#held.delete(key)
    this.#known.add(key)
    this.#deps.deliver(notice)
  }
}

/** null: it only says that there is a newer version, which may be said as often as one likes. */
function keyOf({ jobId, version, move }: JobChanged): string | null {
  return move === undefined ? null : `${jobId} ${version} ${move}`
}
