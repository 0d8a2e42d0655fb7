/**
 * Work that one process of the service does for all. Whoever holds its name does it; the name is renewed long before it lapses, and
 * whoever could not renew it in time has lost it, told or not. Two holders for a moment are harmless where the work is bounded and
 * may be repeated; nothing else may rely on this alone.
 */
import type { Clock } from '../../../lib/clock.ts'
import type { NodeStore } from './node-store.ts'

export interface Leadership {
  /** Whether this process may begin a step of the work now. */
  isHeld(): boolean
  /** Aborted as soon as it is lost; null: that cannot happen. Ask when work begins: each time it is held has its own signal. */
  signal(): AbortSignal | null
}

interface ContestedLeadership extends Leadership {
  /** Takes the name if it is free, and renews it if it is ours. To be repeated several times per `forMs`. */
  renew(): Promise<void>
  /** From now on it is not held here. The name stays ours until it lapses, or until this process is known to have left. */
  end(): void
}

/** Of a process that is alone. */
export const UNCONTESTED: Leadership = { isHeld: () => true, signal: () => null }

interface LeadershipDeps {
  readonly store: Pick<NodeStore, 'takeSingleton'>
  readonly name: string
  readonly nodeId: string
  readonly clock: Clock
  /** How long the name is held without being renewed. */
  readonly forMs: number
}

const LOST = AbortSignal.abort()

export function createLeadership({ store, name, nodeId, clock, forMs }: LeadershipDeps): ContestedLeadership {
  let term: AbortController | null = null
  let heldUntilMs = 0
  let timer: NodeJS.Timeout | null = null
  let isOver = false

  function lose(): void {
    if (timer !== null) clearTimeout(timer)
    timer = null
    term?.abort()
    term = null
  }

  function loseWhenLapsed(): void {
    if (clock.now().getTime() >= heldUntilMs) lose()
  }

  function hold(untilMs: number, nowMs: number): void {
    term ??= new AbortController()
    heldUntilMs = untilMs
    if (timer !== null) clearTimeout(timer)
    timer = setTimeout(loseWhenLapsed, Math.max(0, untilMs - nowMs))
  }

  return {
    isHeld: () => term !== null && clock.now().getTime() < heldUntilMs,
    signal: () => term?.signal ?? LOST,
    async renew() {
      loseWhenLapsed()
      const now = clock.now()
      const until = new Date(now.getTime() + forMs)
      const held = await store.takeSingleton({ name, nodeId, now, until })
      if (isOver) return
      if (held.nodeId === nodeId) hold(held.heldUntil.getTime(), clock.now().getTime())
      else lose()
    },
    end() {
      isOver = true
      lose()
    },
  }
}
