/**
 * Accounts and their counters, and the counts of jobs by status that follow from the counters. `account` is what submits write,
 * `account_load` what claims and ends write: neither waits for the other.
 */
import type { Account } from '../../../../../domain/accounts/account.ts'
import type { AccountUse } from '../../../../../domain/accounts/account-store.ts'
import type { JobStatus } from '../../../../../domain/jobs/transitions.ts'
import type { Connected } from '../../database/connections.ts'
import { type Queryable, statement } from '../../database/statement.ts'

const PUT = statement(
  'accounts.put',
  `INSERT INTO account (id, max_queued)
   SELECT id, max_queued FROM unnest($1::text[], $2::bigint[]) AS a(id, max_queued) ORDER BY id
   ON CONFLICT (id) DO UPDATE SET max_queued = excluded.max_queued`,
)
const PUT_LOAD = statement(
  'accounts.put_load',
  `INSERT INTO account_load (account_id, max_running)
   SELECT id, max_running FROM unnest($1::text[], $2::bigint[]) AS a(id, max_running) ORDER BY id
   ON CONFLICT (account_id) DO UPDATE SET max_running = excluded.max_running`,
)

/** Creates the accounts or changes their limits; counters stay. Each account may be there only once. */
export async function putAccounts(tx: Queryable, accounts: readonly Account[]): Promise<void> {
  const ids = accounts.map(({ id }) => id)
  await Promise.all([
    tx.run(PUT, [ids, accounts.map(({ maxQueued }) => maxQueued)]),
    tx.run(PUT_LOAD, [ids, accounts.map(({ maxRunning }) => maxRunning)]),
  ])
}

const FIND_USE = statement<[running: number, queued: number]>(
  'accounts.find_use',
  `SELECT running, submitted - started FROM account JOIN account_load ON account_id = id WHERE id = $1`,
)

export async function findUse(db: Queryable, accountId: string): Promise<AccountUse | null> {
  const row = await db.get(FIND_USE, [accountId])
  return row === undefined ? null : { running: row[0], queued: row[1] }
}

export interface LockedAccount {
  readonly maxQueued: number
  readonly submitted: number
}

const LOCK = statement<[id: string, maxQueued: number, submitted: number]>(
  'accounts.lock',
  `SELECT id, max_queued, submitted FROM account WHERE id = ANY($1::text[]) ORDER BY id FOR NO KEY UPDATE`,
)

/**
 * Until the transaction ends nobody else submits for these accounts or claims one of their keys. What is decided under the lock is
 * read by later statements: they see whatever was committed by those who held it before.
 */
export async function lockAccounts(tx: Queryable, accountIds: readonly string[]): Promise<Map<string, LockedAccount>> {
  const rows = await tx.all(LOCK, [accountIds])
  return new Map(rows.map(([id, maxQueued, submitted]) => [id, { maxQueued, submitted }]))
}

const STARTED = statement<[accountId: string, started: number]>(
  'accounts.started',
  'SELECT account_id, started FROM account_load WHERE account_id = ANY($1::text[])',
)

/** How many jobs of each account ever left its queue. Read without a lock: a claim under way may not be counted yet. */
export async function readStarted(db: Queryable, accountIds: readonly string[]): Promise<Map<string, number>> {
  return new Map(await db.all(STARTED, [accountIds]))
}

type Counts = readonly [
  queued: number,
  running: number,
  succeeded: number,
  canceled: number,
  failed: number,
  expired: number,
]

// One statement, and so one snapshot: every transaction changes rows and counters together, so a difference is never a moment's.
const COMPARE = `
  SELECT a.id, a.submitted - l.started, l.running, l.succeeded, l.canceled, l.failed, l.expired,
    live.queued, live.held, done.succeeded, done.canceled, done.failed, done.expired
  FROM account AS a JOIN account_load AS l ON l.account_id = a.id
  CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE status = 'queued') AS queued, count(*) FILTER (WHERE status <> 'queued') AS held
    FROM job WHERE job.account_id = a.id) AS live
  CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE status = 'succeeded') AS succeeded, count(*) FILTER (WHERE status = 'canceled') AS canceled,
      count(*) FILTER (WHERE status = 'failed') AS failed, count(*) FILTER (WHERE status = 'expired') AS expired
    FROM job_done WHERE job_done.account_id = a.id) AS done`

type Compared = readonly [id: string, ...counters: Counts, ...counted: Counts]

const COMPARE_SOME = statement<Compared>(
  'accounts.compare_some',
  `${COMPARE} WHERE a.id IN (SELECT id FROM account WHERE id > $1 ORDER BY id LIMIT $2) ORDER BY a.id`,
)
const COMPARE_ONE = statement<Compared>('accounts.compare_one', `${COMPARE} WHERE a.id = $1`)
const LOCK_LOAD = statement('accounts.lock_load', 'SELECT 1 FROM account_load WHERE account_id = $1 FOR NO KEY UPDATE')
const CORRECT = statement(
  'accounts.correct',
  'UPDATE account SET submitted = $2 + (SELECT started FROM account_load WHERE account_id = $1) WHERE id = $1',
)
const CORRECT_LOAD = statement(
  'accounts.correct_load',
  `UPDATE account_load SET running = $2, succeeded = $3, canceled = $4, failed = $5, expired = $6 WHERE account_id = $1`,
)

const COMPARED_AT_ONCE = 100

/**
 * Counts every row once, so it costs as much as there are jobs. Returns how many counters were wrong. Only an account whose
 * counters are wrong is locked, and counted again under the lock.
 */
export async function repairCounters(chore: Connected): Promise<number> {
  let wrong = 0
  for (let after = ''; ; ) {
    const compared = await chore.all(COMPARE_SOME, [after, COMPARED_AT_ONCE])
    for (const row of compared) if (countWrong(row) > 0) wrong += await repairAccount(chore, row[0])
    const last = compared.at(-1)
    if (last === undefined || compared.length < COMPARED_AT_ONCE) return wrong
    after = last[0]
  }
}

function repairAccount(chore: Connected, accountId: string): Promise<number> {
  return chore.transaction(async (tx) => {
    const [, , row] = await Promise.all([
      lockAccounts(tx, [accountId]),
      tx.run(LOCK_LOAD, [accountId]),
      tx.get(COMPARE_ONE, [accountId]),
    ])
    const wrong = row === undefined ? 0 : countWrong(row)
    if (row === undefined || wrong === 0) return 0
    const [queued, ...others] = countedOf(row)
    await Promise.all([tx.run(CORRECT, [accountId, queued]), tx.run(CORRECT_LOAD, [accountId, ...others])])
    return wrong
  })
}

const COUNTERS = 6

function countedOf(row: Compared): Counts {
  return row.slice(1 + COUNTERS) as unknown as Counts
}

function countWrong(row: Compared): number {
  return countedOf(row).filter((counted, index) => counted !== row[1 + index]).length
}

const SUM = statement<[...Counts, canceling: number]>(
  'accounts.sum',
  `SELECT coalesce(sum(submitted - started), 0)::bigint, coalesce(sum(running), 0)::bigint, coalesce(sum(succeeded), 0)::bigint,
     coalesce(sum(canceled), 0)::bigint, coalesce(sum(failed), 0)::bigint, coalesce(sum(expired), 0)::bigint,
     -- Walks the held jobs only, of which there are never more than workers.
     (SELECT count(*) FROM job WHERE status IN ('running', 'canceling') AND status = 'canceling')
   FROM account JOIN account_load ON account_id = id`,
)

export async function countByStatus(db: Queryable): Promise<Record<JobStatus, number>> {
  const [queued, held, succeeded, canceled, failed, expired, canceling] = (await db.get(SUM)) ?? [0, 0, 0, 0, 0, 0, 0]
  return { queued, running: held - canceling, succeeded, canceling, canceled, failed, expired }
}
