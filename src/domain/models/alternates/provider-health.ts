/**
 * Which providers work at the moment, as real calls tell; nothing is ever sent only to find out. A name stands for one model at one
 * provider, reached with one key. After five failures in a row, or when more than half of at least ten calls in a minute failed, it
 * is paused; after half a minute a single call tries it. Several processes agree on what is paused through one stored value, and so on
 * who tries. What a refused input or content says about the provider is nothing.
 */
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import type { Clock } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import type { ProviderRefusal, SubmitOutcome } from '../provider.ts'

export interface ProviderHealth {
  /** For how long it is paused; 0: it is not, or may be tried. */
  pausedMs(name: string): number
  /** The same for a call that is about to be sent. 0: it may go, and where the name was paused it is the one that tries. */
  enter(name: string): number | Promise<number>
  note(name: string, outcome: 'worked' | 'failed', tookMs: number): void
  /** Of the latest that worked; null: there was none lately. */
  medianMs(name: string): number | null
  paused(): readonly string[]
  /** Reads what other processes have paused. */
  refresh(): Promise<void>
}

/** Where one value is kept for all processes; a change that was overtaken is made again on what is there then. */
interface PauseStore {
  readMeta(key: string): Promise<string | null>
  changeMeta(key: string, change: (value: string | null) => string): Promise<string>
}

interface HealthDeps {
  /** null: no other process has the store. */
  readonly store: PauseStore | null
  readonly clock: Clock
  readonly log: Log
}

const PAUSES = 'provider_pauses'
const FAILURES_IN_A_ROW = 5
const WINDOW_MS = 60_000
const LEAST_IN_WINDOW = 10
const PAUSE_MS = 30_000
const KEPT_TIMES = 50
const TIMES_MS = 600_000
// Names hold accounts where those bring keys.
const MAX_NAMES = 10_000

interface Record {
  failuresInARow: number
  /** Of the last minute, with what became of them. */
  calls: { readonly at: number; readonly hasFailed: boolean }[]
  times: { readonly at: number; readonly tookMs: number }[]
}

type Pauses = ReadonlyMap<string, number>

export function createProviderHealth({ store, clock, log }: HealthDeps): ProviderHealth {
  const records = new BoundedMap<string, Record>(MAX_NAMES)
  let pauses = new Map<string, number>()
  const others = store === null ? null : createOthers(store, log)
  const now = () => clock.now().getTime()

  function recordOf(name: string): Record {
    const known = records.get(name) ?? { failuresInARow: 0, calls: [], times: [] }
    records.set(name, known)
    return known
  }

  function pause(name: string): void {
    const until = now() + PAUSE_MS
    pauses.set(name, until)
    const about = { provider: name, seconds: PAUSE_MS / 1000 }
    log.warn(about, 'calls to a provider keep failing; it is left out for a while')
    others?.tell(name, until)
  }

  function resume(name: string): void {
    if (!pauses.delete(name)) return
    log.info({ provider: name }, 'a provider works again')
    others?.tell(name, null)
  }

  async function tryAmongAll(among: NonNullable<typeof others>, name: string, at: number): Promise<number> {
    const waitMs = await among.tryFirst(name, at)
    pauses.set(name, at + (waitMs > 0 ? waitMs : PAUSE_MS))
    return waitMs
  }

  return {
    pausedMs: (name) => Math.max(0, (pauses.get(name) ?? 0) - now()),
    enter(name) {
      const until = pauses.get(name)
      if (until === undefined) return 0
      const at = now()
      if (at < until) return until - at
      // The others that come meanwhile wait for what this one finds.
      pauses.set(name, at + PAUSE_MS)
      return others === null ? 0 : tryAmongAll(others, name, at)
    },
    note(name, outcome, tookMs) {
      const record = recordOf(name)
      const at = now()
      const hasFailed = outcome === 'failed'
      record.calls = [...record.calls.filter((call) => call.at > at - WINDOW_MS).slice(-99), { at, hasFailed }]
      if (!hasFailed) {
        record.failuresInARow = 0
        record.times = [...record.times.slice(1 - KEPT_TIMES), { at, tookMs }]
        resume(name)
        return
      }
      record.failuresInARow += 1
      const failed = record.calls.filter((call) => call.hasFailed).length
      const isMost = record.calls.length >= LEAST_IN_WINDOW && failed * 2 > record.calls.length
      if (record.failuresInARow >= FAILURES_IN_A_ROW || isMost) {
        record.calls = []
        pause(name)
      }
    },
    medianMs(name) {
      const since = now() - TIMES_MS
      return medianOf((records.get(name)?.times ?? []).filter(({ at }) => at > since).map(({ tookMs }) => tookMs))
    },
    paused: () => [...pauses].filter(([, until]) => until > now()).map(([name]) => name),
    async refresh() {
      if (others === null) return
      const stored = await others.read()
      for (const name of others.untold()) {
        const ours = pauses.get(name)
        if (ours === undefined) stored.delete(name)
        else stored.set(name, ours)
      }
      pauses = stored
    },
  }
}

/** What an outcome says about its provider; null: nothing. */
export function toVerdict(outcome: SubmitOutcome, isOwnKey: boolean): 'worked' | 'failed' | null {
  if (outcome.outcome !== 'refused') return 'worked'
  const { reason, upstreamStatus, generation } = outcome.refusal
  // What it has against a key of an account is about that key, which may be another one in a moment.
  if (isOwnKey && upstreamStatus !== null && generation === 'none') return null
  if (reason === 'failed' || reason === 'timeout') return 'failed'
  // A refused input or content is an answer: the provider works. The rest was not asked at all.
  return upstreamStatus !== null && (reason === 'policy' || reason === 'invalid') ? 'worked' : null
}

/** What a call is told that is not sent for this reason. */
export function toPaused(provider: string, pausedMs: number): ProviderRefusal {
  const retryAfterSeconds = Math.max(1, Math.ceil(pausedMs / 1000))
  const message = `${provider} is not working at the moment`
  return { reason: 'unavailable', message, upstreamStatus: null, generation: 'none', retryAfterSeconds }
}

function medianOf(times: readonly number[]): number | null {
  return times.length === 0 ? null : (times.toSorted((one, other) => one - other)[times.length >> 1] ?? null)
}

/** What is paused, as all processes know it. */
function createOthers(store: NonNullable<HealthDeps['store']>, log: HealthDeps['log']) {
  /** Names whose change is on its way to the others. */
  const telling = new Map<string, number>()
  return {
    untold: () => telling.keys(),
    read: async () => new Map(readPauses(await store.readMeta(PAUSES))),
    tell(name: string, until: number | null): void {
      telling.set(name, (telling.get(name) ?? 0) + 1)
      const change = (text: string | null) => writePauses(withPause(readPauses(text), name, until))
      void store
        .changeMeta(PAUSES, change)
        .catch((error: unknown) => log.debug({ err: error }, 'what is paused could not be told to other processes'))
        .finally(() => {
          const left = (telling.get(name) ?? 1) - 1
          if (left === 0) telling.delete(name)
          else telling.set(name, left)
        })
    },
    /** Of all processes, one gets 0; the others how long they wait for what it finds. */
    async tryFirst(name: string, at: number): Promise<number> {
      let waitMs = 0
      try {
        await store.changeMeta(PAUSES, (text) => {
          const stored = readPauses(text)
          waitMs = Math.max(0, (stored.get(name) ?? 0) - at)
          return writePauses(waitMs > 0 ? stored : withPause(stored, name, at + PAUSE_MS))
        })
        return waitMs
      } catch {
        // Without the store this process has to do.
        return 0
      }
    },
  }
}

function readPauses(text: string | null): Pauses {
  return new Map(text === null ? [] : Object.entries(JSON.parse(text) as { [name: string]: number }))
}

function withPause(pauses: Pauses, name: string, until: number | null): Pauses {
  const changed = new Map(pauses)
  if (until === null) changed.delete(name)
  else changed.set(name, until)
  return changed
}

function writePauses(pauses: Pauses): string {
  return JSON.stringify(Object.fromEntries(pauses))
}
