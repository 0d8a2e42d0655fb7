/**
 * Moves of jobs may arrive twice, over the medium that all processes share (Postgres or NATS) and over the link to the process that
 * runs the job; each is delivered once. Over the link they are in order with the job's other events. So where there is a link, the
 * end of a run that arrives over the medium waits for its copy over the link, while the link is open and for a bounded time. That the
 * job has a newer version is delivered at once, for listeners that only read the job.
 */
import { BoundedSet } from '../../../lib/bounded-map.ts'
import type { JobChanged, JobMove } from '../../domain/events/event-bus.ts'

interface MoveOrderDeps {
  deliver(notice: JobChanged): void
}

/** What is known of the link over which a move comes as well. */
interface LinkState {
  isOpen(): boolean
  /** Whether something large is on its way there. */
  isArriving(): boolean
}

interface Held {
  readonly notice: JobChanged
  readonly link: LinkState
  timer: NodeJS.Timeout
  heldMs: number
}

const LOOK_MS = 500
// A link that is open brings everything, however busy both sides are; one that leads nowhere is noticed about as soon.
const MAX_HOLD_MS = 5000
// While a large event from before the end is still being received.
const MAX_ARRIVING_MS = 30_000
/** A new link repeats old events: by then the medium has delivered them, or listeners have read the store again. */
const OLD_MS = 2000
const MAX_KNOWN = 20_000

/** What follows everything that a run has told. */
const ENDS_OF_RUNS: ReadonlySet<JobMove> = new Set(['ended', 'returned'])

export class MoveOrder implements Disposable {
  readonly #deps: MoveOrderDeps
  readonly #known = new BoundedSet<string>(MAX_KNOWN)
  readonly #held = new Map<string, Held>()

  constructor(deps: MoveOrderDeps) {
    this.#deps = deps
  }

  /** `link`: null: there is none. */
  byMedium(notice: JobChanged, link: LinkState | null): void {
    const key = keyOf(notice)
    if (key === null) this.#deps.deliver(notice)
    else if (this.#known.has(key) || this.#held.has(key)) return
    else if (link === null || !this.#mustWait(notice)) this.#deliver(key, notice)
    else {
      this.#held.set(key, { notice, link, heldMs: 0, timer: this.#wait(key) })
      this.#deps.deliver(toVersion(notice))
    }
  }

  byLink(notice: JobChanged, ageMs: number): void {
    const key = keyOf(notice)
    if (key === null) this.#deps.deliver(notice)
    else if (this.#known.has(key)) return
    else if (ageMs > OLD_MS && !this.#held.has(key)) this.#deps.deliver(toVersion(notice))
    else this.#deliver(key, notice)
  }

  /** A link broke: whatever waited for one is delivered. */
  release(): void {
    for (const [key, { notice }] of [...this.#held]) this.#deliver(key, notice)
  }

  [Symbol.dispose](): void {
    for (const { timer } of this.#held.values()) clearTimeout(timer)
    this.#held.clear()
  }

  #mustWait({ jobId, move }: JobChanged): boolean {
    if (move !== undefined && ENDS_OF_RUNS.has(move)) return true
    return this.#held.size > 0 && [...this.#held.values()].some(({ notice }) => notice.jobId === jobId)
  }

  #wait(key: string): NodeJS.Timeout {
    return setTimeout(() => {
      const held = this.#held.get(key)
      if (held === undefined) return
      held.heldMs += LOOK_MS
      const { link, heldMs } = held
      const mayCome = link.isOpen() && heldMs < (link.isArriving() ? MAX_ARRIVING_MS : MAX_HOLD_MS)
      if (mayCome) held.timer = this.#wait(key)
      else this.#deliver(key, held.notice)
    }, LOOK_MS)
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

function toVersion({ jobId, accountId, version }: JobChanged): JobChanged {
  return { jobId, accountId, version }
}
