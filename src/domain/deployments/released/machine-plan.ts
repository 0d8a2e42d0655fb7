/**
 * Which machine starts how many engines of each copy, as pure rules. An engine that is up, or about to be, stays where it is; others go where
 * most room is left. A copy that needs no engine now has a machine all the same, which keeps its folder. A machine on which a copy cannot be
 * started gets it only where there is no other.
 */
import type { BuildTarget } from '../../environments/definition.ts'
import { targetOfClass } from '../../environments/fit.ts'
import type { WantedCopy } from './copy-engines.ts'

export interface Machine {
  readonly id: string
  readonly targets: readonly BuildTarget[]
  readonly room: number
  /** Its processes of a copy, whether or not they answer. */
  up(pool: string): number
}

/** By the id of each machine what it is to have, in the order of the wanted copies. */
export type MachinePlan = ReadonlyMap<string, readonly WantedCopy[]>

interface PlanningContext {
  readonly before: MachinePlan
  /** Whether a copy was tried on a machine in vain. */
  readonly isBad: (machineId: string, pool: string) => boolean
}

/** Whether engines of the copy could be started on the machine, were nothing else there. */
export function fitsOn(copy: Pick<WantedCopy, 'gpuClass'>, machine: Pick<Machine, 'targets' | 'room'>): boolean {
  return machine.room > 0 && targetOfClass(copy.gpuClass, machine) !== null
}

export function planMachines(
  wanted: readonly WantedCopy[],
  machines: readonly Machine[],
  { before, isBad }: PlanningContext,
): MachinePlan {
  const left = new Map(machines.map(({ id, room }) => [id, room]))
  const given = new Map(machines.map(({ id }) => [id, new Map<string, number>()]))
  const placed = new Map(wanted.map(({ pool }) => [pool, 0]))
  const had = (id: string, pool: string) => before.get(id)?.find((copy) => copy.pool === pool)?.engines ?? null
  const roomOf = ({ id }: Machine) => left.get(id) ?? 0

  function give({ id }: Machine, pool: string, engines: number): void {
    const own = given.get(id)
    own?.set(pool, (own.get(pool) ?? 0) + engines)
    left.set(id, (left.get(id) ?? 0) - engines)
    placed.set(pool, (placed.get(pool) ?? 0) + engines)
  }

  /** The best one first. */
  function candidates(copy: WantedCopy): Machine[] {
    const rank = (machine: Machine) =>
      (isBad(machine.id, copy.pool) ? 2 : 0) + (had(machine.id, copy.pool) === null ? 1 : 0)
    return machines
      .filter((machine) => fitsOn(copy, machine))
      .toSorted((one, other) => rank(one) - rank(other) || roomOf(other) - roomOf(one))
  }

  for (const copy of wanted)
    for (const machine of machines) {
      if (!fitsOn(copy, machine) || isBad(machine.id, copy.pool)) continue
      const present = Math.max(machine.up(copy.pool), had(machine.id, copy.pool) ?? 0)
      const stay = Math.min(present, roomOf(machine), copy.engines - (placed.get(copy.pool) ?? 0))
      if (stay > 0) give(machine, copy.pool, stay)
    }
  for (let round = 1; wanted.some(({ engines }) => engines >= round); round++)
    for (const [at, copy] of wanted.entries()) {
      if (copy.engines < round || (placed.get(copy.pool) ?? 0) >= round) continue
      const free = candidates(copy).find((machine) => roomOf(machine) > 0)
      if (free !== undefined) give(free, copy.pool, 1)
      else if (round === 1) takeOver(copy, wanted.slice(at + 1))
    }

  /** Where all machines for a copy are taken, one that comes later in the order gives way. */
  function takeOver(copy: WantedCopy, later: readonly WantedCopy[]): void {
    for (const machine of candidates(copy)) {
      const victim = later.findLast(({ pool }) => (given.get(machine.id)?.get(pool) ?? 0) > 0)
      if (victim === undefined) continue
      give(machine, victim.pool, -1)
      give(machine, copy.pool, 1)
      return
    }
  }

  for (const copy of wanted) {
    const isAnywhere = machines.some(({ id }) => given.get(id)?.has(copy.pool) === true)
    const [home] = isAnywhere ? [] : candidates(copy)
    if (home !== undefined) given.get(home.id)?.set(copy.pool, 0)
  }
  return new Map(machines.map((machine) => [machine.id, toCopies(machine)]))

  function toCopies({ id, up }: Machine): WantedCopy[] {
    const own = given.get(id)
    const kept = wanted.flatMap((copy) => (own?.has(copy.pool) ? [{ ...copy, engines: own.get(copy.pool) ?? 0 }] : []))
    // Named until the last of them has ended.
    const leaving = (before.get(id) ?? []).filter(({ pool }) => own?.has(pool) !== true && up(pool) > 0)
    return [...kept, ...leaving.map((copy) => ({ ...copy, engines: 0 }))]
  }
}
