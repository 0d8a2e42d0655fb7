/**
 * The engines of copies on several machines: this one, and those that joined and offer room. Which machine has which copies is written
 * down, because a machine may ask any process of the service what it is to have; what became of it, it says with its beats.
 */
import type { Clock } from '../../../../lib/clock.ts'
import type { ReleasePlace } from '../../environments/bring-release.ts'
import type { BuildTarget } from '../../environments/definition.ts'
import type { ReportedCopy } from '../../service-nodes/machine-report.ts'
import type { CopyEngines, CopyState, WantedCopy } from './copy-engines.ts'
import { fitsOn, type Machine, type MachinePlan, planMachines } from './machine-plan.ts'

export interface JoinedMachine extends Omit<Machine, 'up'> {
  readonly cuda: number | null
  readonly copies: readonly ReportedCopy[]
}

export interface MachinePlans {
  read(): Promise<MachinePlan>
  write(plan: MachinePlan): Promise<void>
}

interface SharedCopiesDeps {
  readonly own: CopyEngines
  /** What engines here run on. */
  readonly targets: readonly BuildTarget[]
  /** Those that are there now. */
  readonly machines: () => Promise<readonly JoinedMachine[]>
  readonly plans: MachinePlans
  readonly clock: Clock
}

const OWN = 'own'
/** So long what a machine had stays written down: one that comes back goes on with it. */
const REMEMBERED_MS = 120_000
/** So long machines may be away, perhaps to be started again, before a deployment that needs one of them fails. */
const AWAY_MS = 120_000

export class SharedCopies implements CopyEngines {
  readonly #deps: SharedCopiesDeps
  #joined: readonly JoinedMachine[] = []
  #plan: MachinePlan | null = null
  #written = ''
  /** Why a copy could not be started on a machine, while the copy is wanted. */
  readonly #bad = new Map<string, string>()
  /** When there was last a machine for a class. */
  readonly #fittedAt = new Map<string, number>()
  /** When a machine with copies was there last. */
  readonly #seenAt = new Map<string, number>()

  constructor(deps: SharedCopiesDeps) {
    this.#deps = deps
  }

  get room(): number {
    return this.#deps.own.room + this.#joined.reduce((sum, machine) => sum + machine.room, 0)
  }

  async keep(wanted: readonly WantedCopy[]): Promise<void> {
    const { own, machines, plans } = this.#deps
    const before = this.#plan ?? (await plans.read())
    this.#plan = before
    this.#joined = await machines()
    this.#learnBad(new Set(wanted.map(({ pool }) => pool)))
    const all = this.#all()
    for (const { gpuClass } of wanted) {
      const isThere = all.some((machine) => fitsOn({ gpuClass }, machine))
      if (isThere || !this.#fittedAt.has(gpuClass)) this.#fittedAt.set(gpuClass, this.#nowMs())
    }
    const isBad = (machineId: string, pool: string) => this.#bad.has(badKey(machineId, pool))
    const plan = new Map([...this.#planOfAbsent(before), ...planMachines(wanted, all, { before, isBad })])
    this.#plan = plan
    const text = JSON.stringify([...plan])
    if (text !== this.#written) await plans.write(new Map([...plan].filter(([id]) => id !== OWN)))
    this.#written = text
    await own.keep(plan.get(OWN) ?? [])
  }

  async letGo(): Promise<void> {
    this.#plan = null
    this.#written = ''
    this.#bad.clear()
    this.#seenAt.clear()
    await this.#deps.own.letGo()
  }

  async place(accountId: string, releaseId: string, gpuClass: string): Promise<ReleasePlace> {
    const isIt = (copy: WantedCopy) => copy.releaseId === releaseId && copy.gpuClass === gpuClass
    const all = [...(this.#plan?.values() ?? [])].flatMap((own) => own.filter(isIt))
    const copies = [...new Map(all.map((copy) => [copy.pool, copy])).values()]
    const places = await this.#placesOf(copies, accountId)
    const order = (found: ReleasePlace) =>
      ['here', 'coming', 'gone'].indexOf(found.place) -
      (found.place === 'coming' && found.staging !== undefined ? 0.5 : 0)
    const best = places.toSorted((one, other) => order(one) - order(other))[0]
    if (best !== undefined)
      return best.place === 'gone' && this.#isUntried(gpuClass, copies) ? { place: 'coming' } : best
    if (this.#nowMs() - (this.#fittedAt.get(gpuClass) ?? 0) < AWAY_MS) return { place: 'coming' }
    return { place: 'gone', reason: `no machine that starts engines of class ${gpuClass} is there; start one` }
  }

  look(pool: string): CopyState {
    const told = this.#joined.flatMap((machine) => this.#reportOf(machine, pool) ?? [])
    const own = this.#deps.own.look(pool)
    // What this machine was not told to have says nothing of whether the copy may still come up.
    const judged: readonly CopyState[] = this.#has(OWN, pool) ? [own, ...told] : told
    const sum = (of: (state: CopyState) => number) => [own, ...told].reduce((total, state) => total + of(state), 0)
    const ready = sum((state) => state.ready)
    const isHopeless = ready === 0 && judged.every(({ failure }) => failure !== null)
    return {
      ...{ up: sum((state) => state.up), ready, busy: sum((state) => state.busy) },
      failure: isHopeless ? (judged[0]?.failure ?? null) : null,
    }
  }

  #nowMs(): number {
    return this.#deps.clock.now().getTime()
  }

  #all(): Machine[] {
    const { own, targets } = this.#deps
    const up = (machine: JoinedMachine) => (pool: string) => this.#reportOf(machine, pool)?.up ?? 0
    return [
      { id: OWN, targets, room: own.room, up: (pool) => own.look(pool).up },
      ...this.#joined.map((machine): Machine => ({ ...machine, up: up(machine) })),
    ]
  }

  #has(machineId: string, pool: string): boolean {
    return this.#plan?.get(machineId)?.some((copy) => copy.pool === pool) === true
  }

  /** What a machine says of copies that it was not told to have counts for nothing. */
  #reportOf({ id, copies }: JoinedMachine, pool: string): ReportedCopy | undefined {
    return this.#has(id, pool) ? copies.find((copy) => copy.pool === pool) : undefined
  }

  #learnBad(wanted: ReadonlySet<string>): void {
    for (const { id, copies } of this.#joined)
      for (const { pool, reason, failure, ready } of copies) {
        const problem = reason ?? (ready === 0 ? failure : null)
        if (problem !== null && this.#has(id, pool)) this.#bad.set(badKey(id, pool), problem)
      }
    for (const key of this.#bad.keys()) if (!wanted.has(key.slice(key.indexOf(' ') + 1))) this.#bad.delete(key)
  }

  /** Of machines that were there a moment ago. */
  #planOfAbsent(before: MachinePlan): [string, readonly WantedCopy[]][] {
    const [seenAt, nowMs] = [this.#seenAt, this.#nowMs()]
    for (const { id } of this.#joined) seenAt.set(id, nowMs)
    const isThere = new Set([OWN, ...this.#joined.map(({ id }) => id)])
    const absent = [...before].filter(([id, copies]) => {
      if (isThere.has(id) || copies.length === 0) return false
      if (!seenAt.has(id)) seenAt.set(id, nowMs)
      return nowMs - (seenAt.get(id) ?? 0) < REMEMBERED_MS
    })
    const isKnown = new Set([...isThere, ...absent.map(([id]) => id)])
    for (const id of seenAt.keys()) if (!isKnown.has(id)) seenAt.delete(id)
    return absent
  }

  /** Where a release is said to be by those that have copies of it. */
  async #placesOf(copies: readonly WantedCopy[], accountId: string): Promise<ReleasePlace[]> {
    const places: ReleasePlace[] = []
    for (const { pool, releaseId, gpuClass } of copies) {
      for (const machine of this.#joined) {
        if (!this.#has(machine.id, pool)) continue
        const problem = this.#bad.get(badKey(machine.id, pool))
        const report = this.#reportOf(machine, pool)
        if (report?.place === 'here') places.push({ place: 'here' })
        else if (problem !== undefined) places.push({ place: 'gone', reason: problem })
        else places.push({ place: 'coming', ...(report?.staging && { staging: report.staging }) })
      }
      if (!this.#has(OWN, pool)) continue
      const found = await this.#deps.own.place(accountId, releaseId, gpuClass)
      if (found.place === 'gone') this.#bad.set(badKey(OWN, pool), found.reason)
      places.push(found)
    }
    return places
  }

  /** Whether a machine has not tried yet what others could not do. */
  #isUntried(gpuClass: string, copies: readonly WantedCopy[]): boolean {
    return this.#all().some(
      (machine) => fitsOn({ gpuClass }, machine) && !copies.some(({ pool }) => this.#bad.has(badKey(machine.id, pool))),
    )
  }
}

function badKey(machineId: string, pool: string): string {
  return `${machineId} ${pool}`
}
