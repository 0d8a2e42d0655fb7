/**
 * Lets a call in, or says what stands against it, in the order of the contract: the record of its key, credits, the input,
 * the call pool, the ceiling of committed spend. Only a call that passes all of them leaves anything behind.
 */
import type {
  AdmitOptions,
  AdmitOutcome,
  CallLimits,
  NewCall,
  Standing,
} from '../../../../domain/models/calls/call-store.ts'
import { get, type Steps } from '../../statements/operation.ts'
import { postgresOnly, query } from '../../statements/statement.ts'
import { routerCall } from '../../tables/calls.ts'
import { encode, pick, type RowOf } from '../../tables/table.ts'
import { lockPurses } from '../ledger/holds.ts'
import { findKeyHolder, type KeyedCall, type KeyVerdict } from './call-key.ts'
import {
  enterPool,
  findAffordable,
  holdFor,
  isOpenedBefore,
  judgePool,
  lockPool,
  type PoolLoad,
  readStanding,
  toCallHold,
  toNarrowings,
  toStanding,
  toUnaffordable,
} from './call-pool.ts'
import { toCallEnd } from './call-result.ts'

const written = pick(routerCall, 'seq', 'fence', 'plan', 'attemptIndex')

// No two admissions of a process have the same end of their lease, so it tells what an earlier try of the same one let in. Through the
// index of running calls, of which there are few.
const FIND_OWN = query(
  'calls.findOwn',
  written,
  postgresOnly(`SELECT ${written.columns} FROM router_call
    WHERE state = 'running' AND id = :id AND owner = :owner AND lease_until = :until`),
)
const INSERT = query(
  'calls.admit',
  written,
  (words) => `
    INSERT INTO router_call (id, account_id, key, fingerprint, queued, state, model, base_url, created_at, expires_at, started_at,
      hold_micros, spend_micros, costly, owner, lease_until, fence, job_id, plan)
    VALUES (:id, :accountId, :key, :fingerprint, ${words.either('0', 'false')}, 'running', :modelId, :baseUrl, :createdAt, :expiresAt,
      :createdAt, :holdMicros, :spendMicros, :isCostly, :owner, :leaseUntil, 1, :jobId, :plan)
    RETURNING ${written.columns}`,
)
const RESUME = query(
  'calls.resume',
  written,
  (words) => `
    UPDATE router_call SET state = 'running', attempt = attempt + 1, base_url = :baseUrl, started_at = :createdAt,
      hold_micros = :holdMicros, spend_micros = :spendMicros, costly = :isCostly, owner = :owner, lease_until = :leaseUntil,
      fence = fence + 1, stop_asked = ${words.either('0', 'false')}
    WHERE seq = :seq RETURNING ${written.columns}`,
)
const values = pick(
  routerCall,
  ...(['id', 'accountId', 'key', 'fingerprint', 'modelId', 'baseUrl', 'createdAt', 'expiresAt', 'holdMicros'] as const),
  ...(['spendMicros', 'isCostly', 'owner', 'leaseUntil', 'jobId', 'plan'] as const),
)

export function* admitCall(call: NewCall, limits: CallLimits, { isValid, lease }: AdmitOptions): Steps<AdmitOutcome> {
  const { accountId } = call
  const { owner } = lease
  const load = yield* lockPool(accountId)
  const own = yield* get(FIND_OWN, { id: call.id, owner, until: lease.until })
  if (own !== undefined) {
    return toAdmitted(own, { id: call.id, accountId, owner }, yield* readStanding(accountId))
  }
  if (isOpenedBefore(call, load)) return { outcome: 'keys_changed' }
  const verdict = yield* findKeyHolder(call)
  const known = answerFromKey(verdict, call, load)
  if (known !== null) return known
  const before = verdict.use === 'interrupted' ? verdict.call : null
  const id = before?.id ?? call.id
  const attempt = before === null ? 0 : before.attempt + 1
  const hold = toCallHold(call, id, attempt)
  const purses = hold === null ? null : yield* lockPurses([hold])
  const affordable = findAffordable(call, { id, attempt, purses })
  if (affordable === undefined) return toUnaffordable(call, { id, attempt, purses })
  if (!isValid) return { outcome: 'invalid' }
  const judged = toNarrowings(affordable).map((each) => ({ each, verdict: judgePool(load, each, limits) }))
  const fitting = judged.find(({ verdict }) => verdict === 'free')?.each
  if (fitting === undefined) return toExhausted(judged.at(-1)?.verdict, load)
  const standing = yield* enterPool(fitting)
  const row = yield* writeCall(fitting, lease, before)
  yield* holdFor(fitting, { id, attempt, purses })
  return toAdmitted(row, { id, accountId, owner }, standing)
}

/** What stands against the call even without its alternates. */
function toExhausted(verdict: ReturnType<typeof judgePool> | undefined, load: PoolLoad): AdmitOutcome {
  const outcome = verdict === 'spend_exhausted' ? verdict : 'calls_exhausted'
  return { outcome, standing: toStanding(load) }
}

function toAdmitted(
  { seq, fence, plan, attemptIndex }: RowOf<typeof written>,
  about: { readonly id: string; readonly accountId: string; readonly owner: string },
  standing: Standing,
): AdmitOutcome {
  return { outcome: 'admitted', ref: { ...about, seq, fence }, standing, plan, attemptIndex }
}

/** Of a call whose key is used again, it is the attempt whose outcome is unknown that must bear a second submit. */
function canResubmit({ plan, attemptIndex }: KeyedCall, { mayResubmit, resubmittable = [] }: NewCall): boolean {
  const lost = plan?.attempts[attemptIndex]
  return lost === undefined ? mayResubmit : resubmittable.includes(lost.modelId)
}

/** What the key's record says, when that is the answer; null when the call may go on. */
function answerFromKey(verdict: KeyVerdict, call: NewCall, load: PoolLoad): AdmitOutcome | null {
  const standing = toStanding(load)
  const { accountId } = call
  switch (verdict.use) {
    case 'free':
      return null
    case 'interrupted':
      if (canResubmit(verdict.call, call)) return null
      if (verdict.result === null) return { outcome: 'unusable' }
      return { outcome: 'done', id: verdict.call.id, end: toCallEnd(verdict.result), standing }
    case 'done':
      return { outcome: 'done', id: verdict.id, end: toCallEnd(verdict.result), standing }
    case 'running': {
      const { seq, id, modelId } = verdict.call
      return { outcome: 'running', ref: { seq, id, accountId }, modelId, standing }
    }
    case 'waiting': {
      const { seq, id } = verdict.call
      return { outcome: 'waiting', ref: { seq, id, accountId } }
    }
    case 'other_request':
    case 'unusable':
      return { outcome: verdict.use }
  }
}

function* writeCall(
  call: NewCall,
  { owner, until }: AdmitOptions['lease'],
  before: KeyedCall | null,
): Steps<RowOf<typeof written>> {
  const fields = encode(values, {
    ...call,
    jobId: call.jobId ?? null,
    plan: call.plan ?? null,
    owner,
    leaseUntil: until,
  })
  const row = yield* before === null ? get(INSERT, fields) : get(RESUME, { ...fields, seq: before.seq })
  if (row === undefined) throw new Error(`The call ${call.id} was not written.`)
  return row
}
