/**
 * The connections of one process, in pools with different promises: a durable write, a relaxed write (acknowledged before it
 * is on disk, lost only when the server's machine ends) and reads. Limits on time are the server's where they can be: a statement
 * that takes too long ends there, and its connection stays usable. A connection on which no answer comes for longer than that
 * leads nowhere any more, and is given up.
 */
import type { Duplex } from 'node:stream'
import { type ClientConfig, Pool, type PoolClient, type PoolConfig, type QueryConfig, TypeOverrides } from 'pg'
import type { Log } from '../../../../../lib/log.ts'
import { isStoreAway } from '../../../../domain/errors.ts'
import type { BatchStats, Store } from '../../../../domain/store.ts'
import { createOutageLog, type OutageLog } from './outage-log.ts'
import { toFault, toStoreError } from './postgres-error.ts'
import { onClient, type Queryable } from './statement.ts'

export interface ConnectionOptions {
  readonly url: string
  /** In place of what the URL says. */
  readonly password?: string | undefined
  readonly ssl?: PoolConfig['ssl']
  /** All pools together. */
  readonly maxConnections?: number
  /** How long an answer may take before its connection is given up; left out: by the kind of statement. */
  readonly answerMs?: number
  readonly log: Log
}

export interface Connections extends AsyncDisposable {
  /** Writes that are acknowledged to somebody. */
  readonly durable: Connected
  /** Claims, renewals, progress: whoever holds them dies with the machine that could lose them, or repeats them. */
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

interface TransactionOptions<Result> {
  /**
   * Running it twice does what running it once does: after a broken connection, when nobody knows whether it was
   * committed, it runs again.
   */
  readonly isRepeatable?: boolean
  /** Only reads, and all its statements see the same moment. */
  readonly isSnapshot?: boolean
  /**
   * Writes whose answers decide nothing. They leave together with the COMMIT, which saves one wait for the server; so all of them
   * are sent before the function first waits for anything. When one of them fails, nothing is committed.
   */
  readonly last?: (tx: Queryable, result: Result) => Promise<unknown>
}

const INT8 = 20
const MAX_TRIES = 6
// Whoever waits for a transaction that cannot be done is told so after this time, though it might be tried more often.
const TRY_FOR_MS = 15_000
const CONNECT_MS = 5000
const IDLE_MS = 30_000
const DEFAULT_CONNECTIONS = 8
const BEGIN_SNAPSHOT = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'

const SHARED_SETTINGS = {
  // Planning a claim takes longer than running it; none of our statements profits from a plan for its values.
  plan_cache_mode: 'force_generic_plan',
  jit: 'off',
  idle_in_transaction_session_timeout: '10000',
  lock_timeout: '5000',
}

// Everything but chores finds its rows by a key. A plan that was made while a table was empty would walk it, and is kept while the
// table grows.
const BY_KEY = { enable_seqscan: 'off' }

// Longer than the server lets a statement and the one before it take.
const ANSWER_MS = { durable: 15_000, relaxed: 15_000, read: 25_000, chore: 130_000 }

// Seconds. A machine that vanished must not keep its connections, of which a server has few, for the two hours that systems wait.
const OF_LOST_CLIENTS = { tcp_keepalives_idle: '60', tcp_keepalives_interval: '10', tcp_keepalives_count: '3' }

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

/** What every connection has in common; `settings` are the server's, for this connection. */
export function toClientConfig(
  { url, password, ssl }: Omit<ConnectionOptions, 'log'>,
  settings: Readonly<Record<string, string>>,
): ClientConfig {
  const types = new TypeOverrides()
  // All our numbers are safe integers: times, counts, bytes and micro-dollars.
  types.setTypeParser(INT8, Number)
  return {
    connectionString: url,
    ...(password !== undefined && { password }),
    ...(ssl !== undefined && { ssl }),
    types,
    keepAlive: true,
    connectionTimeoutMillis: CONNECT_MS,
    application_name: 'atelier',
    options: Object.entries({ ...OF_LOST_CLIENTS, ...settings })
      .map(([name, value]) => `-c ${name}=${value}`)
      .join(' '),
  }
}

function openPool(options: ConnectionOptions, max: number, settings: Record<string, string>): Pool {
  const pool = new Pool({
    ...toClientConfig(options, { ...SHARED_SETTINGS, ...settings }),
    max,
    // Statements leave without waiting for the answers to those before them.
    pipeline: true,
    idleTimeoutMillis: IDLE_MS,
  } as PoolConfig)
  // A connection that breaks while it is idle is replaced at its next use.
  pool.on('error', (error) => options.log.debug({ err: error }, 'an idle connection to Postgres has ended'))
  // One that breaks while it is in use fails the statements on it. It also says so by an event, which must have a listener: an
  // error event without one would end the process.
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}

interface Source {
  readonly pool: Pool
  readonly answerMs: number
}

function connectTo(source: Source, tally: Tally): Connected {
  async function single<Result>(ask: (db: Queryable) => Promise<Result>): Promise<Result> {
    const client = await connect(source.pool)
    try {
      const result = await ask(onClient(impatient(client, source)))
      client.release()
      return result
    } catch (error) {
      client.release(isBroken(error))
      throw toStoreError(error)
    }
  }

  return {
    all: (asked, values) => tally.count(() => single((db) => db.all(asked, values))),
    get: (asked, values) => tally.count(() => single((db) => db.get(asked, values))),
    run: (asked, values) => tally.count(() => single((db) => db.run(asked, values))),
    transaction: (body, options) => tally.count(() => runUntilDone(source, body, options)),
    noteBatch: (size) => tally.noteBatch(size),
  }
}

interface Impatient extends Pick<PoolClient, 'query'> {
  /** What failed first; the server answers everything behind that only with that it is not done. */
  firstError(): unknown
}

/** The client, but a connection that owes an answer for too long is ended, which fails everything that waits on it. */
function impatient(client: PoolClient, { answerMs }: Source): Impatient {
  let firstError: unknown = null
  const query = (asked: QueryConfig) => {
    const timer = setTimeout(() => streamOf(client).destroy(), answerMs)
    const answer = client.query(asked)
    answer.then(
      () => clearTimeout(timer),
      (error: unknown) => {
        clearTimeout(timer)
        firstError ??= error
        // For the log: the server does not say which one it was.
        if (error instanceof Error && asked.name) Object.assign(error, { statement: asked.name })
      },
    )
    return answer
  }
  return { query: query as PoolClient['query'], firstError: () => firstError }
}

/** The library has no way to end a connection that does not answer: its own waits for the server to say goodbye. */
function streamOf(client: PoolClient): Duplex {
  return (client as unknown as { readonly connection: { readonly stream: Duplex } }).connection.stream
}

async function runUntilDone<Result>(
  source: Source,
  body: (tx: Queryable) => Promise<Result>,
  { isRepeatable = false, isSnapshot = false, last }: TransactionOptions<Result> = {},
): Promise<Result> {
  const begin = isSnapshot ? BEGIN_SNAPSHOT : 'BEGIN'
  const giveUpAt = performance.now() + TRY_FOR_MS
  for (let tries = 1; ; tries += 1) {
    const outcome = await runOnce(source, begin, { body, last })
    if (outcome.ok) return outcome.result
    const mayRunAgain = (outcome.wasUndone || isRepeatable) && tries < MAX_TRIES && performance.now() < giveUpAt
    if (!mayRunAgain || !isTransient(outcome.error)) throw toStoreError(outcome.error)
  }
}

type Outcome<Result> =
  | { readonly ok: true; readonly result: Result }
  /** `wasUndone`: it surely has no effect. */
  | { readonly ok: false; readonly error: unknown; readonly wasUndone: boolean }

interface Work<Result> {
  readonly body: (tx: Queryable) => Promise<Result>
  readonly last: TransactionOptions<Result>['last'] | undefined
}

async function runOnce<Result>(source: Source, begin: string, { body, last }: Work<Result>): Promise<Outcome<Result>> {
  let client: PoolClient
  try {
    client = await connect(source.pool)
  } catch (error) {
    return { ok: false, error, wasUndone: true }
  }
  const asked = impatient(client, source)
  let committing: Promise<{ readonly command: string }> | null = null
  const begun = asked.query(begin)
  // Its failure also fails the first statement behind it.
  begun.catch(() => {})
  try {
    const tx = onClient(asked)
    const result = await body(tx)
    const sent = last?.(tx, result)
    committing = asked.query('COMMIT')
    const [{ command }] = await Promise.all([committing, sent])
    // After a failed statement that nobody waited for, the server answers a COMMIT with ROLLBACK and without an error.
    if (command !== 'COMMIT') throw new Error(`The transaction was answered with ${command}.`)
    client.release()
    return { ok: true, result }
  } catch (thrown) {
    // Statements may be sent without waiting for those before them, so what was waited for may have failed only because of them.
    const error = isOnlyBehind(thrown) ? (asked.firstError() ?? thrown) : thrown
    const broken = isBroken(error)
    if (!broken) await (committing ?? asked.query('ROLLBACK')).catch(() => {})
    client.release(broken)
    return { ok: false, error, wasUndone: !(committing !== null && broken) }
  }
}

async function connect(pool: Pool): Promise<PoolClient> {
  try {
    return await pool.connect()
  } catch (error) {
    throw toStoreError(error)
  }
}

function isTransient(error: unknown): boolean {
  return toFault(error) === 'undone' || isBroken(error) || isStoreAway(error)
}

/** `in_failed_sql_transaction`: a statement before it has failed. */
function isOnlyBehind(error: unknown): boolean {
  return (error as { readonly code?: string } | null)?.code === '25P02'
}

/** The connection cannot be used any more. */
function isBroken(error: unknown): boolean {
  const code = (error as { readonly code?: string }).code
  // A statement or lock that timed out leaves its connection as it was.
  return toFault(error) === 'unavailable' && code !== '57014' && code !== '55P03'
}
