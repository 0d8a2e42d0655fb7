/** The store that the configuration names. */

import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import { openSqliteStore } from '../../adapters/store/sqlite/open-sqlite-store.ts'
import type { PostgresConfig, StoreConfig } from '../../config/blocks/store-config.ts'
import type { Secrets } from '../../config/secrets.ts'
import { type Store, StoreOpenError } from '../../domain/store.ts'
import { toConnection } from './postgres-connection.ts'

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
