/**
 * Statements and transactions on a connection of a pool. A transaction that the server undid in favour of another one runs again.
 * A connection on which no answer comes for too long leads nowhere any more, and is given up.
 */
import type { Pool, PoolClient, QueryConfig, QueryResult } from 'pg'
import { streamOf } from '../../../../../lib/postgres/driver.ts'
import { isStoreAway } from '../../../../domain/errors.ts'
import { toFault, toStoreError } from './postgres-error.ts'
import { onClient, type Queryable } from './statement.ts'

export interface TransactionOptions<Result> {
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

const MAX_TRIES = 6
// A transaction that keeps failing is given up after this time, even if more tries are left.
const TRY_FOR_MS = 15_000
const BEGIN_SNAPSHOT = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'

export interface PatientPool {
  readonly pool: Pool
  readonly answerMs: number
}

/** Asks one statement, which is a transaction of its own. */
export async function askOnce<Result>(source: PatientPool, ask: (db: Queryable) => Promise<Result>): Promise<Result> {
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

interface Impatient extends Pick<PoolClient, 'query'> {
  /** What failed first; the server answers everything behind that only with that it is not done. */
  firstError(): unknown
}

/** The client, but a connection that owes an answer for too long is ended, which fails everything that waits on it. */
function impatient(client: PoolClient, { answerMs }: PatientPool): Impatient {
  let firstError: unknown = null
  // With a callback: left to itself, the library makes one that keeps the answer alive until a full collection (decision 0073).
  const query = (asked: QueryConfig) =>
    new Promise<QueryResult>((resolve, reject) => {
      const timer = setTimeout(() => streamOf(client).destroy(), answerMs)
      client.query(asked, (error: Error | null, result) => {
        clearTimeout(timer)
        if (error === null || error === undefined) return resolve(result)
        firstError ??= error
        // For the log: the server does not say which one it was.
        if (asked.name) Object.assign(error, { statement: asked.name })
        reject(error)
      })
    })
  return { query: query as PoolClient['query'], firstError: () => firstError }
}

export async function runUntilDone<Result>(
  source: PatientPool,
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

async function runOnce<Result>(
  source: PatientPool,
  begin: string,
  { body, last }: Work<Result>,
): Promise<Outcome<Result>> {
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
    // After a failed statement whose result was not awaited, the server answers a COMMIT with ROLLBACK and without an error.
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
