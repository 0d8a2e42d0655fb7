/**
 * What an account has under way, and the money that is set aside for a call. The account's row is locked, before anything else, by every
 * operation that lets a call in, ends one or puts one back: so the limits are exact, and the records of its keys do not change meanwhile.
 */
import { NO_LABELS } from '../../../../domain/credits/charges.ts'
import type { CallLimits, NewCall, Standing } from '../../../../domain/models/calls/call-store.ts'
import { type Asked, get, run, type Steps } from '../../statements/operation.ts'
import { command, query } from '../../statements/statement.ts'
import { routerAccount } from '../../tables/calls.ts'
import { flag, omit, type RowOf, shape } from '../../tables/table.ts'
import { closeMany, type HoldInput, type Purses } from '../ledger/holds.ts'

const pool = omit(routerAccount, 'accountId')
export type PoolLoad = RowOf<typeof pool>

const LOCK = query(
  'calls.lockPool',
  pool,
  (words) => `SELECT ${pool.columns} FROM router_account WHERE account_id = :accountId ${words.lock('NO KEY UPDATE')}`,
)
const MAKE = command(
  'calls.makePool',
  `INSERT INTO router_account (account_id, running, costly, committed_micros) VALUES (:accountId, 0, 0, 0)
   ON CONFLICT (account_id) DO NOTHING`,
)
const CHANGE = query(
  'calls.changePool',
  pool,
  `UPDATE router_account SET running = running + :calls, costly = costly + :costly, committed_micros = committed_micros + :micros
   WHERE account_id = :accountId RETURNING ${pool.columns}`,
)
const READ = query('calls.readPool', pool, `SELECT ${pool.columns} FROM router_account WHERE account_id = :accountId`)
const CANNOT_PAY = query(
  'calls.cannotPay',
  shape({ cannotPay: flag() }),
  'SELECT 1 AS cannot_pay FROM credit_account WHERE account_id = :accountId AND available - :micros < floor',
)

const EMPTY: PoolLoad = { running: 0, costly: 0, committedMicros: 0, keysVersion: 0 }

/** Until the transaction ends no other one can change the pool. */
export function* lockPool(accountId: string): Steps<PoolLoad> {
  const load = yield* get(LOCK, { accountId })
  if (load !== undefined) return load
  yield* run(MAKE, { accountId })
  return (yield* get(LOCK, { accountId })) ?? EMPTY
}

/** Of an account whose calls were let in, so that its row is there. */
export function lockKnownPool(accountId: string): Asked<PoolLoad | undefined> {
  return get(LOCK, { accountId })
}

interface PoolEntry {
  readonly accountId: string
  readonly isCostly: boolean
  readonly spendMicros: number
}

function changePool({ accountId, isCostly, spendMicros }: PoolEntry, by: 1 | -1) {
  return get(CHANGE, { accountId, calls: by, costly: by * Number(isCostly), micros: by * spendMicros })
}

export function* enterPool(entry: PoolEntry): Steps<Standing> {
  return toStanding((yield* changePool(entry, 1)) ?? EMPTY)
}

export function* leavePool(entry: PoolEntry): Steps<void> {
  yield* changePool(entry, -1)
}

export function* readStanding(accountId: string): Steps<Standing> {
  return toStanding((yield* get(READ, { accountId })) ?? EMPTY)
}

/** True for an account that is not metered. */
export function* canPay(accountId: string, micros: number): Steps<boolean> {
  return (yield* get(CANNOT_PAY, { accountId, micros })) === undefined
}

export function toStanding({ running, committedMicros }: PoolLoad): Standing {
  return { runningCalls: running, committedMicros }
}

/** The keys of its account at providers have changed since the call was opened, and with them who pays for it. */
export function isOpenedBefore({ keysVersion }: Pick<NewCall, 'keysVersion'>, load: PoolLoad): boolean {
  return keysVersion !== undefined && keysVersion !== load.keysVersion
}

/** Whether one more call fits. */
export function judgePool(
  load: PoolLoad,
  call: { readonly isCostly: boolean; readonly spendMicros: number },
  { maxCalls, maxCostlyCalls, ceilingMicros }: CallLimits,
): 'free' | 'calls_exhausted' | 'spend_exhausted' {
  const isFull =
    (maxCalls !== null && load.running >= maxCalls) ||
    (call.isCostly && maxCostlyCalls !== null && load.costly >= maxCostlyCalls)
  if (isFull) return 'calls_exhausted'
  return ceilingMicros !== null && load.committedMicros + call.spendMicros > ceilingMicros ? 'spend_exhausted' : 'free'
}

/** A call that is admitted again after a crash takes a new hold; the old one was released. */
function callHoldId(callId: string, attempt: number): string {
  return attempt === 0 ? `call:${callId}` : `call:${callId}:${attempt}`
}

/** What is set aside for a call; null: it is free. */
export function toCallHold(call: NewCall, id: string, attempt: number): HoldInput | null {
  const { accountId, modelId, keyId = null, tag = null, holdMicros, createdAt } = call
  if (holdMicros === null) return null
  const labels = { ...NO_LABELS, model: modelId, keyId, tag }
  return { holdId: callHoldId(id, attempt), accountId, micros: holdMicros, at: createdAt.getTime(), labels }
}

interface Payment {
  readonly id: string
  readonly attempt: number
  /** null: the call sets nothing aside. */
  readonly purses: Purses | null
}

/** The call as the account can afford it: an alternate that it could not pay is left out. undefined: it can pay for none. */
/** What stands against even the least that the call may cost. */
export function toUnaffordable(call: NewCall, { id, attempt, purses }: Payment) {
  const hold = toCallHold(toNarrowings(call).at(-1) ?? call, id, attempt)
  const budget = hold === null ? null : (purses?.excessOf(hold) ?? null)
  return { outcome: 'no_credits' as const, ...(budget !== null && { budget }) }
}

export function findAffordable<Call extends NewCall>(call: Call, { id, attempt, purses }: Payment): Call | undefined {
  if (purses === null) return call
  return toNarrowings(call).find((each) => {
    const hold = toCallHold(each, id, attempt)
    return hold === null || purses.canHold(hold)
  })
}

/** The call, and then with ever fewer of its alternates. */
export function toNarrowings<Call extends NewCall>(call: Call): readonly Call[] {
  return call.narrower === undefined ? [call] : [call, ...call.narrower.map((less) => ({ ...call, ...less }))]
}

export function* holdFor(call: NewCall, { id, attempt, purses }: Payment): Steps<void> {
  const hold = toCallHold(call, id, attempt)
  if (purses === null || hold === null) return
  purses.hold(hold)
  yield* purses.write()
}

interface PaidCall {
  readonly id: string
  readonly attempt: number
  /** null: the model is free. */
  readonly holdMicros: number | null
}

/** What was charged; null when nothing was set aside for it, or the account is not metered. The last step of an operation. */
export function* settleCall(
  { id, attempt, holdMicros }: PaidCall,
  { micros, memo, at }: { readonly micros: number; readonly memo: string; readonly at: Date },
): Steps<number | null> {
  if (holdMicros === null) return null
  // A price that rose while the call waited is not the one that its caller agreed to.
  const close = { holdId: callHoldId(id, attempt), micros: Math.min(micros, holdMicros), at: at.getTime(), memo }
  const [charged = null] = yield* closeMany([{ kind: micros > 0 ? 'settle' : 'release', ...close }])
  return charged
}
