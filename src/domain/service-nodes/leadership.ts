/**
 * Work that one process does for the whole service. The process that holds its name does it; the name is renewed long before it expires, and
 * a process that could not renew it in time has lost it, even if it was not notified. Two holders for a moment are harmless where the work is bounded and
 * may be repeated; nothing else may rely on this alone.
 */
import type { Clock } from '../../../lib/clock.ts'
import type { Contender } from './heartbeat.ts'

export interface Leadership {
  /** Whether this process may begin a step of the work now. */
  isHeld(): boolean
  /** Aborted as soon as it is lost; null: that cannot happen. Ask when work begins: each time it is held has its own signal. */
  signal(): AbortSignal | null
}

interface ContestedLeadership extends Leadership, Contender {
  /** From now on it is not held here. The name stays ours until it lapses, or until this process is known to have left. */
  end(): void
}

/** Of a process that is alone. */
export const UNCONTESTED: Leadership = { isHeld: () => true, signal: () => null }

interface LeadershipDeps {
  readonly name: string
  readonly clock: Clock
  /** How long the name is held without being renewed: several beats. */
  readonly forMs: number
  /** Whether this process should do the work now; left out: whenever no other process does. */
  readonly mayLead?: () => Promise<boolean>
}

const LOST = AbortSignal.abort()

export function createLeadership(deps: LeadershipDeps): ContestedLeadership {
  const { name, clock, forMs, mayLead = async () => true } = deps
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
    async want() {
      loseWhenLapsed()
      if (isOver || !(await mayLead())) return null
      return { name, until: new Date(clock.now().getTime() + forMs) }
    },
    told({ until }, isHeld) {
      if (isOver) return
      if (isHeld) hold(until.getTime(), clock.now().getTime())
      else lose()
    },
    end() {
      isOver = true
      lose()
    },
  }
}
