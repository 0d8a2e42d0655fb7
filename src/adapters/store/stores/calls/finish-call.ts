/**
 * Ends a call: stores its answer, charges for it and takes it out of the pool; does nothing when it had ended before, or is
 * another node's now.
 */
import type { CallFate, CallFinish, HeldCall } from '../../../../domain/models/calls/call-store.ts'
import { get, run, type Steps, together } from '../../statements/operation.ts'
import { command, query } from '../../statements/statement.ts'
import { routerCall } from '../../tables/calls.ts'
import { pick } from '../../tables/table.ts'
import { leavePool, lockKnownPool, settleCall } from './call-pool.ts'
import { dropInput, putResult } from './call-result.ts'

/** The call runs, and is its holder's. */
export const IS_HELD = `seq = :seq AND id = :id AND state = 'running' AND owner = :owner AND fence = :fence`

/** The values that `IS_HELD` names. */
export function toHeld({ seq, id, owner, fence }: HeldCall) {
  return { seq, id, owner, fence }
}

const held = pick(routerCall, 'key', 'isQueued', 'attempt', 'holdMicros', 'spendMicros', 'isCostly')
const LOCK_HELD = query(
  'calls.lockHeld',
  held,
  (words) => `SELECT ${held.columns} FROM router_call WHERE ${IS_HELD} ${words.lock('UPDATE')}`,
)
// An index over what is set is written even where the value stays: only what changes is named.
const END = command('calls.end', 'UPDATE router_call SET state = :state WHERE seq = :seq')
export const END_UNTIL = command(
  'calls.endUntil',
  'UPDATE router_call SET state = :state, expires_at = :expiresAt WHERE seq = :seq',
)
const REMOVE = command('calls.removeEnded', 'DELETE FROM router_call WHERE seq = :seq')

const STATE: Readonly<Record<Exclude<CallFate, 'forget'>, string>> = {
  keep: 'done',
  interrupt: 'interrupted',
  spend: 'unusable',
}

export function* finishCall(
  ref: HeldCall,
  { fate, end, chargeMicros, memo, at, replayUntil, expiresAt }: CallFinish,
): Steps<{ readonly chargedMicros: number | null } | null> {
  const { seq, id, accountId } = ref
  const [, call] = yield* together(lockKnownPool(accountId), get(LOCK_HELD, toHeld(ref)))
  if (call === undefined) return null
  const { key, isQueued, attempt, holdMicros, spendMicros, isCostly } = call
  yield* leavePool({ accountId, isCostly, spendMicros })
  // A call without a key can never be asked for again, so nothing of it needs to be remembered.
  if (fate === 'forget' || (key === null && !isQueued)) yield* run(REMOVE, { seq })
  else {
    // Before the state changes, because the message about the end contains the result.
    if (end !== null) yield* putResult({ seq, accountId, end, at, replayUntil })
    const state = STATE[fate]
    yield* expiresAt === null ? run(END, { seq, state }) : run(END_UNTIL, { seq, state, expiresAt })
  }
  if (isQueued) yield* dropInput(seq, at)
  return { chargedMicros: yield* settleCall({ id, attempt, holdMicros }, { micros: chargeMicros ?? 0, memo, at }) }
}
