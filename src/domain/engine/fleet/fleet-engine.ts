/**
 * An engine that may come and go, as a fleet needs it: beside running jobs it reports its health and can be repaired. How it is
 * reached, probed and restarted is the adapter's business; who may give it work is the fleet's.
 */
import type { ObjectInfo } from '../../../../engine/graph/object-info.ts'
import type { Clock } from '../../../../lib/clock.ts'
import type { Engine } from '../engine-port.ts'
import type { WeightFile } from '../weights/weight-files.ts'
import type { WeightStore } from '../weights/weight-store.ts'
import type { EngineRuntime } from './observed-release.ts'

/** What went wrong last, in words that an operator may read. */
export interface EngineTrouble {
  readonly message: string
  readonly at: Date
}

export interface EngineHealth {
  /** `starting`: not reached yet, or restarted on purpose; `lost`: it was there and is gone. Both are probed with backoff. */
  readonly state: 'starting' | 'ready' | 'lost'
  /** Nobody is there, which is known: what ran there is lost. Left out: it is not known. */
  readonly isGone?: boolean
  /** Counts the processes that were seen behind this engine: with a new one, everything that was loaded is gone. */
  readonly incarnation: number
  readonly lastError: EngineTrouble | null
  /** Runs of ours on it that nobody follows yet, and that may still be adopted: their slots are taken. Left out: none. */
  readonly awaited?: number
  /** Why it must not be given work although it answers, as long as that is so; null: it may. */
  readonly unfit: string | null
  /** The version that the engine states, such as `0.33.0`; null when it is not known. */
  readonly version: string | null
  /** How often the connection for its events had to be made anew. */
  readonly reconnects: number
  /** What its process occupies; null when that cannot be seen (an engine on another machine). */
  readonly memoryBytes: number | null
  /** Since when the present process runs; null when that is not known. */
  readonly startedAt: Date | null
}

/** The first device of an engine. */
export interface EngineDevice {
  readonly name: string
  readonly vramTotalBytes: number | null
}

export interface FleetEngine extends Engine {
  /** Stable over restarts of ours, for example its address: what was learnt about it is remembered under this name. */
  readonly id: string
  /** How many runs it is given at a time. */
  readonly concurrency: number
  /** It is a part of this process, so it is never paused, quarantined or replaced after a run. */
  readonly isResident?: true
  /** Its runs go on without this process, and can be adopted by another. */
  readonly keepsRuns?: true
  /** The pool of the copy whose jobs alone it runs. Absent: it runs those of every pool that is not a copy's. */
  readonly pool?: string
  health(): EngineHealth
  /** The listener is called after every change of health or of the object info. Returns the end of the subscription. */
  onChange(listener: () => void): () => void
  /** What it can run, as it said last; null as long as it has never been reached. */
  objectInfo(): ObjectInfo | null
  /** Asks it anew what it can run; settles when that is known. Absent: that never changes. */
  refreshList?(): Promise<void>
  /** The files of weights that it lists, the same object until they change; null: it has not told yet. Absent: it lists none. */
  weightFiles?(): readonly WeightFile[] | null
  /** What its process runs on, as it says. Absent: it never does. */
  runtime?(): EngineRuntime
  /** What it computes on, as it says; null: it has not said. Absent: it never does. */
  device?(): EngineDevice | null
  /** Its folders of models, where this process can write them. Absent: it cannot. */
  readonly weightStore?: WeightStore
  /** What it printed lately, without credentials of runs. Absent: nobody listens to it. */
  readonly log?: EngineLog
  /** Called before the first work, and again after another process drove it: ends what dead processes left there. Absent: nothing. */
  takeOver?(): Promise<void>
  /** Unloads weights and caches, after a run had too little memory. Absent: it cannot. */
  free?(options: { readonly signal: AbortSignal }): Promise<void>
  /** Ends its process and starts a new one; resolves when that is under way. Absent: its process is not ours. */
  recycle?(reason: string): Promise<void>
}

/**
 * What an engine printed lately, for whoever looks after it: the newest lines, each bounded. Credentials of runs must be taken out of
 * a text before it comes here; nothing of this is stored.
 */
interface EngineLine {
  /** Rises by one from line to line, from 1. */
  readonly n: number
  readonly at: Date
  readonly text: string
}

export interface EngineLog {
  /** Another one after every start: numbers of lines begin anew. */
  readonly beganAt: Date
  /** Takes a piece of what was printed: a line, several, or a part of one. */
  hear(piece: string): void
  /** The newest, in their order. */
  lines(): readonly EngineLine[]
}

const MAX_LINES = 1000
const MAX_LINE_LENGTH = 2000

export function createEngineLog(clock: Clock): EngineLog {
  const lines: EngineLine[] = []
  let rest = ''
  let count = 0

  function keep(text: string): void {
    count += 1
    lines.push({ n: count, at: clock.now(), text: text.trimEnd() })
    if (lines.length > MAX_LINES) lines.shift()
  }

  return {
    beganAt: clock.now(),
    hear(piece) {
      // A bar of progress is drawn again and again over itself.
      const parts = piece.split(/\r?\n|\r/)
      for (const [index, part] of parts.entries()) {
        if (rest.length < MAX_LINE_LENGTH) rest += part.slice(0, MAX_LINE_LENGTH - rest.length)
        if (index === parts.length - 1) break
        if (rest !== '') keep(rest)
        rest = ''
      }
    },
    lines: () => lines,
  }
}

/** The built-in engine, which belongs to this process, as a member of a fleet: always ready, never restarted. */
const HEALTH: EngineHealth = {
  state: 'ready',
  incarnation: 1,
  lastError: null,
  unfit: null,
  version: null,
  reconnects: 0,
  memoryBytes: null,
  startedAt: null,
}

interface ResidentOptions {
  readonly id: string
  readonly concurrency: number
  /** Its maker closes it, and the fleet does not. */
  readonly isBorrowed?: boolean
}

export function toResidentEngine(
  engine: Engine,
  { id, concurrency, isBorrowed = false }: ResidentOptions,
): FleetEngine {
  const catalog = engine.catalog()
  const info = Object.fromEntries(catalog.classTypes().map((classType) => [classType, catalog.find(classType)!]))
  return {
    id,
    concurrency,
    isResident: true,
    catalog: () => engine.catalog(),
    run: (run, options) => engine.run(run, options),
    health: () => ({ ...HEALTH, memoryBytes: engine.memoryBytes?.() ?? null }),
    onChange: () => () => {},
    objectInfo: () => info as ObjectInfo,
    async [Symbol.asyncDispose]() {
      if (!isBorrowed) await engine[Symbol.asyncDispose]()
    },
  }
}

// Which engines this process drives. It may give an engine work only while it holds it, and only once whatever dead processes left
// there has been taken over; a server that several processes were given is so never filled by two of them.

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
