/**
 * What an account has under way. Its row is locked, before anything else, by every transaction that lets a call in, ends one or
 * puts one back: so the limits are exact, and the records of an account's keys do not change meanwhile.
 */
import type { Standing } from '../../../../../domain/models/calls/call-store.ts'
import type { PoolLoad } from '../../../call-records.ts'
import { type Queryable, statement } from '../../database/statement.ts'

type Row = [running: number, costly: number, committedMicros: number]

const LOCK = statement<Row>(
  'calls.lock-pool',
  'SELECT running, costly, committed_micros FROM router_account WHERE account_id = $1 FOR NO KEY UPDATE',
)
const MAKE = statement(
  'calls.make-pool',
  `INSERT INTO router_account (account_id, running, costly, committed_micros) VALUES ($1, 0, 0, 0)
   ON CONFLICT (account_id) DO NOTHING`,
)
const CHANGE = statement<Row>(
  'calls.change-pool',
  `UPDATE router_account SET running = running + $2, costly = costly + $3, committed_micros = committed_micros + $4
   WHERE account_id = $1 RETURNING running, costly, committed_micros`,
)
const READ = statement<[number, number]>(
  'calls.read-pool',
  'SELECT running, committed_micros FROM router_account WHERE account_id = $1',
)
const CANNOT_PAY = statement<[number]>(
  'calls.cannot-pay',
  'SELECT 1 FROM credit_account WHERE account_id = $1 AND available - $2 < floor',
)

/** Until the transaction ends no other transaction can change the pool. */
export async function lockPool(tx: Queryable, accountId: string): Promise<PoolLoad> {
  const row = await tx.get(LOCK, [accountId])
  if (row !== undefined) return toLoad(row)
  await tx.run(MAKE, [accountId])
  return toLoad((await tx.get(LOCK, [accountId])) ?? [0, 0, 0])
}

/** Of an account whose calls were let in, so that its row is there. */
export async function lockKnownPool(tx: Queryable, accountId: string): Promise<void> {
  await tx.get(LOCK, [accountId])
}

interface PoolEntry {
  readonly accountId: string
  readonly isCostly: boolean
  readonly spendMicros: number
}

export async function enterPool(tx: Queryable, { accountId, isCostly, spendMicros }: PoolEntry): Promise<Standing> {
  const row = await tx.get(CHANGE, [accountId, 1, Number(isCostly), spendMicros])
  return toStanding(toLoad(row ?? [0, 0, 0]))
}

export async function leavePool(tx: Queryable, { accountId, isCostly, spendMicros }: PoolEntry): Promise<void> {
  await tx.run(CHANGE, [accountId, -1, -Number(isCostly), -spendMicros])
}

export async function readStanding(db: Queryable, accountId: string): Promise<Standing> {
  const [runningCalls, committedMicros] = (await db.get(READ, [accountId])) ?? [0, 0]
  return { runningCalls, committedMicros }
}

/** True for an account that is not metered. */
export async function canPay(db: Queryable, accountId: string, micros: number): Promise<boolean> {
  return (await db.get(CANNOT_PAY, [accountId, micros])) === undefined
}

export function toStanding({ running, committedMicros }: PoolLoad): Standing {
  return { runningCalls: running, committedMicros }
}

function toLoad([running, costly, committedMicros]: Row): PoolLoad {
  return { running, costly, committedMicros }
}
