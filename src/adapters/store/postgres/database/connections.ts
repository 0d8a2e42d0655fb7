/**
 * The connections of one process, in pools with different promises: a durable write, a relaxed write (acknowledged before it
 * is on disk, lost only when the server's machine ends) and reads. Limits on time are the server's where they can be: a statement
 * that takes too long ends there, and its connection stays usable.
 */
import type { BatchStats, Store } from '../../../../domain/store.ts'
import { createOutageLog, type OutageLog } from './outage-log.ts'
import { type ConnectionOptions, openPool } from './pool.ts'
import type { Queryable } from './statement.ts'
import { askOnce, type PatientPool, runUntilDone, type TransactionOptions } from './transaction.ts'

export interface Connections extends AsyncDisposable {
  /** Writes that are acknowledged to somebody. */
  readonly durable: Connected
  /** Claims, renewals, progress: if a crash of the server loses one, its writer repeats it or the job runs again. */
  readonly relaxed: Connected
  readonly read: Connected
  /** Sweeps and reports, which may take long. */
  readonly chore: Connected
  stats(): ReturnType<Store['stats']>
}

/** Each statement asked directly is a transaction of its own. */
export interface Connected extends Queryable {
  /**
   * Runs the body in one transaction. Statements may be sent without waiting for the ones before. When the server undoes it
   * in favour of another one (deadlock, serialization) it runs again from the start, so the body must not have side effects.
   */
  transaction<Result>(body: (tx: Queryable) => Promise<Result>, options?: TransactionOptions<Result>): Promise<Result>
  /** What is asked next does the work of this many operations, which were gathered. */
  noteBatch(size: number): void
}

const DEFAULT_CONNECTIONS = 8

// Everything but chores finds its rows by a key. A plan that was made while a table was empty would walk it, and is kept while the
// table grows.
const BY_KEY = { enable_seqscan: 'off' }

// Longer than the server lets a statement and the one before it take.
const ANSWER_MS = { durable: 15_000, relaxed: 15_000, read: 25_000, chore: 130_000 }

export function openConnections(options: ConnectionOptions): Connections {
  const total = Math.max(4, options.maxConnections ?? DEFAULT_CONNECTIONS)
  const share = (part: number) => Math.max(1, Math.floor(total * part))
  const pools = {
    // The server must not end a COMMIT that takes too long: one that waits for a standby would then count as done without it.
    durable: openPool(options, share(0.375), { ...BY_KEY, statement_timeout: '0' }),
    relaxed: openPool(options, share(0.25), { ...BY_KEY, statement_timeout: '5000', synchronous_commit: 'off' }),
    read: openPool(options, share(0.25), { ...BY_KEY, statement_timeout: '10000' }),
    chore: openPool(options, share(0.125), { statement_timeout: '60000' }),
  }
  const toConnected = (name: keyof typeof pools, tally: Tally) =>
    connectTo({ pool: pools[name], answerMs: options.answerMs ?? ANSWER_MS[name] }, tally)
  const all = Object.values(pools)
  const outages = createOutageLog(options.log)
  const writes = createTally(outages)
  const reads = createTally(outages)
  return {
    durable: toConnected('durable', writes),
    relaxed: toConnected('relaxed', writes),
    read: toConnected('read', reads),
    chore: toConnected('chore', writes),
    stats: () => ({ write: writes.stats(), read: reads.stats() }),
    async [Symbol.asyncDispose]() {
      await Promise.all(all.map((pool) => pool.end()))
    },
  }
}

function connectTo(source: PatientPool, tally: Tally): Connected {
  const askFor = (kind: 'all' | 'get' | 'run') => (asked: never, values?: never) =>
    tally.count(() =>
      askOnce(
        source,
        (db): Promise<never> => (db[kind] as (...asked: never[]) => Promise<never>)(asked, values as never),
      ),
    )
  return {
    all: askFor('all'),
    get: askFor('get'),
    run: askFor('run'),
    transaction: (body, options) => tally.count(() => runUntilDone(source, body, options)),
    noteBatch: (size) => tally.noteBatch(size),
  }
}

/** Counts transactions; a statement asked directly is one. Each is one operation, unless several were gathered for it. */
interface Tally {
  count<Result>(run: () => Promise<Result>): Promise<Result>
  noteBatch(size: number): void
  stats(): BatchStats
}

function createTally(outages: OutageLog): Tally {
  let batches = 0
  let operations = 0
  let failedOperations = 0
  let pending = 0
  let largestBatch = 0
  return {
    async count(run) {
      pending += 1
      operations += 1
      try {
        const result = await run()
        outages.answered()
        return result
      } catch (error) {
        failedOperations += 1
        outages.failed(error)
        throw error
      } finally {
        pending -= 1
        batches += 1
        largestBatch = Math.max(largestBatch, 1)
      }
    },
    noteBatch(size) {
      operations += size - 1
      largestBatch = Math.max(largestBatch, size)
    },
    stats: () => ({ batches, operations, largestBatch, failedOperations, pending }),
  }
}
