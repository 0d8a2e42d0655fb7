/** The locks under which jobs are submitted. */
import { type Queryable, statement } from '../../database/statement.ts'

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
