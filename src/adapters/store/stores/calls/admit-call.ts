/**
 * Lets a call in, or says what stands against it, in the order of the contract: the record of its key, credits, the input,
 * the call pool, the ceiling of committed spend. Only a call that passes all of them leaves anything behind.
 */
import type { AdmitOptions, AdmitOutcome, CallLimits, NewCall } from '../../../../domain/models/calls/call-store.ts'
import { get, type Steps } from '../../statements/operation.ts'
import { postgresOnly, query } from '../../statements/statement.ts'
import { routerCall } from '../../tables/calls.ts'
import { encode, pick, type RowOf } from '../../tables/table.ts'
import { lockPurses } from '../ledger/holds.ts'
import { findKeyHolder, type KeyedCall, type KeyVerdict } from './call-key.ts'
import { enterPool, judgePool, lockPool, type PoolLoad, readStanding, toCallHold, toStanding } from './call-pool.ts'
import { toCallEnd } from './call-result.ts'

const written = pick(routerCall, 'seq', 'fence')

// No two admissions of a process have the same end of their lease, so it tells what an earlier try of the same one let in. Through the
// index of running calls, of which there are few.
const FIND_OWN = query(
  'calls.findOwn',
  written,
  postgresOnly(`SELECT seq, fence FROM router_call
    WHERE state = 'running' AND id = :id AND owner = :owner AND lease_until = :until`),
)
const INSERT = query(
  'calls.admit',
  written,
  (words) => `
    INSERT INTO router_call (id, account_id, key, fingerprint, queued, state, model, base_url, created_at, expires_at, started_at,
      hold_micros, spend_micros, costly, owner, lease_until, fence, job_id)
    VALUES (:id, :accountId, :key, :fingerprint, ${words.either('0', 'false')}, 'running', :modelId, :baseUrl, :createdAt, :expiresAt,
      :createdAt, :holdMicros, :spendMicros, :isCostly, :owner, :leaseUntil, 1, :jobId)
    RETURNING seq, fence`,
)
const RESUME = query(
  'calls.resume',
  written,
  (words) => `
    UPDATE router_call SET state = 'running', attempt = attempt + 1, base_url = :baseUrl, started_at = :createdAt,
      hold_micros = :holdMicros, spend_micros = :spendMicros, costly = :isCostly, owner = :owner, lease_until = :leaseUntil,
      fence = fence + 1, stop_asked = ${words.either('0', 'false')}
    WHERE seq = :seq RETURNING seq, fence`,
)
const values = pick(
  routerCall,
  ...(['id', 'accountId', 'key', 'fingerprint', 'modelId', 'baseUrl', 'createdAt', 'expiresAt', 'holdMicros'] as const),
  ...(['spendMicros', 'isCostly', 'owner', 'leaseUntil', 'jobId'] as const),
)

export function* admitCall(call: NewCall, limits: CallLimits, { isValid, lease }: AdmitOptions): Steps<AdmitOutcome> {
  const { accountId } = call
  const { owner } = lease
  const load = yield* lockPool(accountId)
  const own = yield* get(FIND_OWN, { id: call.id, owner, until: lease.until })
  if (own !== undefined) {
    return {
      outcome: 'admitted',
      ref: { ...own, id: call.id, accountId, owner },
      standing: yield* readStanding(accountId),
    }
  }
  const verdict = yield* findKeyHolder(call)
  const known = answerFromKey(verdict, call, load)
  if (known !== null) return known
  const before = verdict.use === 'interrupted' ? verdict.call : null
  const id = before?.id ?? call.id
  const hold = toCallHold(call, id, before === null ? 0 : before.attempt + 1)
  const purses = hold === null ? null : yield* lockPurses([hold])
  if (purses !== null && hold !== null && !purses.canHold(hold)) return { outcome: 'no_credits' }
  if (!isValid) return { outcome: 'invalid' }
  const verdictOfPool = judgePool(load, call, limits)
  if (verdictOfPool !== 'free') return { outcome: verdictOfPool, standing: toStanding(load) }
  const standing = yield* enterPool(call)
  const { seq, fence } = yield* writeCall(call, lease, before)
  if (purses !== null && hold !== null) {
    purses.hold(hold)
    yield* purses.write()
  }
  return { outcome: 'admitted', ref: { seq, id, accountId, owner, fence }, standing }
}

/** What the key's record says, when that is the answer; null when the call may go on. */
function answerFromKey(verdict: KeyVerdict, { accountId, mayResubmit }: NewCall, load: PoolLoad): AdmitOutcome | null {
  const standing = toStanding(load)
  switch (verdict.use) {
    case 'free':
      return null
    case 'interrupted':
      if (mayResubmit) return null
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
  const fields = encode(values, { ...call, jobId: call.jobId ?? null, owner, leaseUntil: until })
  const row = yield* before === null ? get(INSERT, fields) : get(RESUME, { ...fields, seq: before.seq })
  if (row === undefined) throw new Error(`The call ${call.id} was not written.`)
  return row
}
