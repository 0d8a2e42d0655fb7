/**
 * Which engines this process drives. It may give an engine work only while it holds it, and only once whatever dead processes left
 * there has been taken over; a server that several processes were given is so never filled by two of them.
 */
import type { Clock } from '../../../../lib/clock.ts'

export interface EngineLeases {
  /** This process is the one that holds the engine now. */
  isHeld(engineId: string): boolean
  /** It may give the engine work. */
  isDriven(engineId: string): boolean
}

export interface ContestedLeases extends EngineLeases {
  /** What the registry answered: exactly these are held, until then. Returns those that are held and not driven yet. */
  hold(engineIds: readonly string[], until: Date): readonly string[]
  /** An engine that was taken over may have work from now on. */
  drive(engineId: string): void
}

/** Of a process that is alone. */
export const ALL_ENGINES: EngineLeases = { isHeld: () => true, isDriven: () => true }

export function createEngineLeases(clock: Clock): ContestedLeases {
  const driven = new Set<string>()
  let held: ReadonlySet<string> = new Set()
  let untilMs = 0

  const isHeld = (engineId: string) => held.has(engineId) && clock.now().getTime() < untilMs
  return {
    isHeld,
    isDriven: (engineId) => driven.has(engineId) && isHeld(engineId),
    hold(engineIds, until) {
      // What had lapsed in between may have been driven by somebody else.
      const wasLapsed = clock.now().getTime() >= untilMs
      held = new Set(engineIds)
      untilMs = until.getTime()
      for (const engineId of driven) if (wasLapsed || !held.has(engineId)) driven.delete(engineId)
      return engineIds.filter((engineId) => !driven.has(engineId))
    },
    drive: (engineId) => void driven.add(engineId),
  }
}
