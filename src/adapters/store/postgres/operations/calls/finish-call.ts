/**
 * Ends a call: stores its answer, charges for it and takes it out of the pool; does nothing when it had ended before, or is
 * another node's now.
 */
import type { CallFate, CallFinish, HeldCall } from '../../../../../domain/models/calls/call-store.ts'
import { callHoldId, toResultFields } from '../../../call-records.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { release, settle } from '../credits/ledger-holds.ts'
import { leavePool, lockKnownPool } from './call-pool.ts'
import { dropInput, insertResult } from './call-result.ts'

type Row = [
  key: string | null,
  isQueued: boolean,
  attempt: number,
  holdMicros: number | null,
  spendMicros: number,
  isCostly: boolean,
]

const SELECT = statement<Row>(
  'calls.lock-held',
  `SELECT key, queued, attempt, hold_micros, spend_micros, costly FROM router_call
   WHERE seq = $1 AND id = $2 AND state = 'running' AND owner = $3 AND fence = $4 FOR UPDATE`,
)
const END = statement(
  'calls.end',
  'UPDATE router_call SET state = $2, expires_at = coalesce($3, expires_at) WHERE seq = $1',
)
const REMOVE = statement('calls.remove-ended', 'DELETE FROM router_call WHERE seq = $1')

const STATE: Readonly<Record<Exclude<CallFate, 'forget'>, string>> = {
  keep: 'done',
  interrupt: 'interrupted',
  spend: 'unusable',
}

export async function finishCall(
  tx: Queryable,
  ref: HeldCall,
  finish: CallFinish,
): Promise<{ readonly chargedMicros: number | null } | null> {
  const { seq, id, accountId, owner, fence } = ref
  const [, row] = await Promise.all([lockKnownPool(tx, accountId), tx.get(SELECT, [seq, id, owner, fence])])
  if (row === undefined) return null
  const [key, isQueued, attempt, holdMicros, spendMicros, isCostly] = row
  const at = finish.at.getTime()
  const { fate, end } = finish
  await leavePool(tx, { accountId, isCostly, spendMicros })
  // A call without a key can never be asked for again, so nothing of it needs to be remembered.
  if (fate === 'forget' || (key === null && !isQueued)) await tx.run(REMOVE, [seq])
  else {
    const replayUntil = finish.replayUntil?.getTime() ?? null
    // Before the state changes, because the message about the end contains the result.
    if (end !== null) await insertResult(tx, { seq, accountId, fields: toResultFields(end), at, replayUntil })
    await tx.run(END, [seq, STATE[fate], finish.expiresAt?.getTime() ?? null])
  }
  if (isQueued) await dropInput(tx, seq, at)
  const held = { id, attempt, holdMicros }
  return { chargedMicros: await settleCall(tx, held, { micros: finish.chargeMicros ?? 0, memo: finish.memo, at }) }
}

interface PaidCall {
  readonly id: string
  readonly attempt: number
  /** null: the model is free. */
  readonly holdMicros: number | null
}

/** What was charged; null when nothing was set aside for it, or the account is not metered. The last step of a transaction. */
export async function settleCall(
  tx: Queryable,
  { id, attempt, holdMicros }: PaidCall,
  { micros, memo, at }: { readonly micros: number; readonly memo: string; readonly at: number },
): Promise<number | null> {
  if (holdMicros === null) return null
  const holdId = callHoldId(id, attempt)
  // A price that rose while the call waited is not the one that its caller agreed to.
  if (micros > 0) return settle(tx, { holdId, micros: Math.min(micros, holdMicros), at, memo })
  return (await release(tx, { holdId, at, memo })) ? 0 : null
}
