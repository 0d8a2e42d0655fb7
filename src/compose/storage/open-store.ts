/** The store that the configuration names. */
import { type Clock, systemClock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import { settlesWithin } from '../../../lib/waiting/sleep.ts'
import type { ConnectionOptions } from '../../adapters/store/postgres/database/pool.ts'
import { openSqliteStore } from '../../adapters/store/sqlite/open-sqlite-store.ts'
import type { PostgresConfig, StoreConfig } from '../../config/blocks/store-config.ts'
import type { Config } from '../../config/config.ts'
import type { Secret, Secrets } from '../../config/secrets.ts'
import type { Chore } from '../../domain/jobs/sweeps/housekeeping.ts'
import { type MetaStore, type Store, StoreOpenError, type StoreUpkeep } from '../../domain/store.ts'

export interface StoreOverrides {
  /** For tests: the migrations of another version. */
  readonly migrationsDirectory?: string
}

interface StoreDeps {
  /** How long jobs are kept; left out by whoever adds none. */
  readonly retentionMs?: number
  readonly overrides?: StoreOverrides
  readonly secrets: Pick<Secrets, 'databasePassword'>
  readonly clock: Clock
  readonly log: Log
}

export async function openStore(config: StoreConfig, deps: StoreDeps): Promise<Store> {
  const store = await open(config, deps)
  try {
    await mustBeWhole(store)
    return store
  } catch (error) {
    await store[Symbol.asyncDispose]()
    throw error
  }
}

/** Whatever a service wrote after a move, or during one, would be lost. */
async function mustBeWhole(store: Store): Promise<void> {
  const movedTo = await store.readMeta('moved_to')
  if (movedTo !== null) {
    throw new StoreOpenError(
      'unusable',
      `Its records were moved to ${movedTo}. Use them there, or start afresh elsewhere.`,
    )
  }
  if ((await store.readMeta('move_progress')) === null) return
  throw new StoreOpenError(
    'unusable',
    'A move into it is not complete. Run `atelier move` again: it goes on where it ended.',
  )
}

function open(config: StoreConfig, deps: StoreDeps): Promise<Store> {
  if (config.kind === 'postgres') return openPostgres(config, deps)
  const { clock, log } = deps
  const synchronous = config.synchronous === 'full' ? 'FULL' : 'NORMAL'
  return openSqliteStore({ directory: config.directory, synchronous, clock, log })
}

// Ended jobs leave by ranges of their expiry. A look-up by id asks each range, so there are about this many, whatever the retention;
// and a job is gone at most one range after its retention has ended.
const RANGES = 8
const SHORTEST_RANGE_MS = 5 * 60_000

async function openPostgres(config: PostgresConfig, deps: StoreDeps): Promise<Store> {
  const { retentionMs, secrets, overrides, clock, log } = deps
  // Loaded only here: a service on SQLite starts without the client library.
  const { openPostgresStore } = await import('../../adapters/store/postgres/open-postgres-store.ts')
  const connection = toConnection(config, secrets.databasePassword)
  const ranges =
    retentionMs === undefined ? {} : { partitionMs: Math.max(SHORTEST_RANGE_MS, Math.ceil(retentionMs / RANGES)) }
  const { migrationsDirectory } = overrides ?? {}
  const migrates = config.migrate === 'auto'
  return openPostgresStore({ ...connection, ...ranges, migrates, migrationsDirectory, clock, log })
}

// Begins to open the store before the rest of the program is loaded: a store in the data folder opens in threads of its own
// meanwhile.

/** The store that is opening; left out for a store on Postgres, which is opened once the rest is loaded. */
export function beginStore(
  { store: config }: Pick<Config, 'store'>,
  secrets: Secrets,
  log: Log,
): { readonly store?: Promise<Store> } {
  if (config.kind !== 'sqlite') return {}
  const store = openStore(config, { secrets, clock: systemClock, log })
  // The start is told of a failure when it comes to it.
  store.catch(() => {})
  return { store }
}

// Finds out whether the store answers, for readiness: one small read, whose answer is reused for a moment.

const FRESH_MS = 1_000
const ANSWER_WITHIN_MS = 5_000

/** False when the store refuses or is silent; never rejects. `now` in milliseconds, never going back. */
export function createStoreProbe(store: Pick<MetaStore, 'readMeta'>, now: () => number): () => Promise<boolean> {
  let known = { answers: true, at: Number.NEGATIVE_INFINITY }
  let asking: Promise<boolean> | null = null

  async function ask(): Promise<boolean> {
    const read = store.readMeta('readiness').then(
      () => true,
      () => false,
    )
    const answers = (await settlesWithin(read, ANSWER_WITHIN_MS)) && (await read)
    known = { answers, at: now() }
    asking = null
    return answers
  }

  return async () => {
    if (now() - known.at < FRESH_MS) return known.answers
    asking ??= ask()
    return asking
  }
}

/** What a store that several processes share needs now and then. An embedded one looks after itself. */
interface StoreChoreOptions {
  readonly clock: Clock
  /** How long jobs are kept. */
  readonly retentionMs: number
}

const MINUTE_MS = 60_000
// Enough time for an operator to fix whatever keeps the chore from running.
const AHEAD_MS = 2 * 24 * 60 * MINUTE_MS

export function createStoreChores(upkeep: StoreUpkeep | null, { clock, retentionMs }: StoreChoreOptions): Chore[] {
  if (upkeep === null) return []
  return [
    { name: 'reclaim-rows', runs: 'once', everyMs: MINUTE_MS, run: (signal) => upkeep.reclaim(signal) },
    {
      name: 'renew-statistics',
      runs: 'once',
      everyMs: 60 * MINUTE_MS,
      run: (signal) => upkeep.renewStatistics(signal),
    },
    {
      name: 'prepare-expiries',
      runs: 'once',
      everyMs: 60 * MINUTE_MS,
      async run() {
        const fromMs = clock.now().getTime() + retentionMs
        await upkeep.prepareExpiries({ from: new Date(fromMs), to: new Date(fromMs + AHEAD_MS) })
      },
    },
  ]
}

/** Turns the settings of a Postgres database into what its adapters connect with. */
export function toConnection(
  { url, maxConnections }: PostgresConfig,
  password: Secret<string> | null,
): Omit<ConnectionOptions, 'log'> {
  return { url, maxConnections, password: password?.reveal() }
}
