/** Draws a schedule of faults from a seed: the same seed and shape give the same faults at the same times. */
import { type SeededRandom, seededRandom } from '../../support/seeded-random.ts'
import type { WorldShape } from '../world/world.ts'
import { FAULTS, type FaultKind, type FaultRow } from './fault-kinds.ts'

export interface PlannedFault {
  /** Since the load began. */
  readonly atMs: number
  readonly kind: FaultKind
  readonly target: string
  readonly lastsMs: number
}

export interface PlanOptions {
  readonly seed: number
  readonly lastsMs: number
  readonly shape: WorldShape
  /** Between the begins of two faults, on the average. */
  readonly everyMs: number
  /** All by default. */
  readonly kinds?: readonly FaultKind[]
}

// Nothing begins before the clients are at work, and everything is mended a while before they stop.
const QUIET_START_MS = 5000
const QUIET_END_MS = 10_000
const ALL_KINDS = Object.keys(FAULTS) as FaultKind[]

export function planFaults({ seed, lastsMs, shape, everyMs, kinds = ALL_KINDS }: PlanOptions): PlannedFault[] {
  const random = seededRandom(seed)
  const possible = kinds.filter((kind) => FAULTS[kind].targets(shape).length > 0)
  const planned: PlannedFault[] = []
  /** Until when each target has its fault: two faults of one target come one after the other. */
  const busyUntil = new Map<string, number>()
  for (let atMs = QUIET_START_MS; atMs < lastsMs - QUIET_END_MS; atMs += everyMs * 2 * random.next()) {
    const kind = pickKind(possible, random)
    const row: FaultRow = FAULTS[kind]
    const target = random.pick(row.targets(shape))
    const [least, most] = row.ms
    const faultMs = Math.min(random.between(least, most + 1), Math.max(0, lastsMs - QUIET_END_MS - atMs))
    if ((busyUntil.get(target) ?? 0) > atMs) continue
    busyUntil.set(target, atMs + faultMs)
    planned.push({ atMs: Math.round(atMs), kind, target, lastsMs: faultMs })
  }
  return planned
}

interface TurnOptions extends Pick<PlanOptions, 'seed' | 'shape' | 'everyMs'> {
  readonly kinds: readonly FaultKind[]
  readonly count: number
}

/** The kinds one after the other, again and again, at a steady pace and each as short as it can be. */
export function planInTurn({ seed, shape, kinds, count, everyMs }: TurnOptions): PlannedFault[] {
  const random = seededRandom(seed)
  return Array.from({ length: count }, (_, index) => {
    const kind = kinds[index % kinds.length] as FaultKind
    const { targets, ms } = FAULTS[kind] as FaultRow
    return { atMs: (index + 1) * everyMs, kind, target: random.pick(targets(shape)), lastsMs: ms[0] }
  })
}

function pickKind(kinds: readonly FaultKind[], random: SeededRandom): FaultKind {
  const total = kinds.reduce((sum, kind) => sum + FAULTS[kind].weight, 0)
  let drawn = random.next() * total
  for (const kind of kinds) {
    drawn -= FAULTS[kind].weight
    if (drawn < 0) return kind
  }
  return kinds[0] as FaultKind
}
