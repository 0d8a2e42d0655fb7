/**
 * Lets a call in, or says what stands against it, in the order of the contract: the record of its key, credits, the input,
 * the call pool, the ceiling of committed spend. Only a call that passes all of them leaves anything behind.
 */
import type { AdmitOptions, AdmitOutcome, CallLimits, NewCall } from '../../../../../domain/models/calls/call-store.ts'
import { callHoldId, judgePool, type PoolLoad, toCallEnd } from '../../../call-records.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { lockPurses } from '../credits/ledger-holds.ts'
import { toCallHold } from './call-hold.ts'
import { findKeyHolder, type KeyedCall, type KeyVerdict } from './call-key.ts'
import { enterPool, lockPool, readStanding, toStanding } from './call-pool.ts'

interface Admission {
  readonly call: NewCall
  readonly limits: CallLimits
  readonly options: AdmitOptions
  /** It was tried before, and it is unknown whether that try was committed. */
  readonly isAgain: boolean
}

// Through the index of running calls, of which there are few.
const FIND_OWN = statement<[seq: number, fence: number]>(
  'calls.find-own',
  `SELECT seq, fence FROM router_call WHERE state = 'running' AND id = $1 AND owner = $2`,
)

export async function admitCall(tx: Queryable, admission: Admission): Promise<AdmitOutcome> {
  const { call, limits, options, isAgain } = admission
  const { accountId, key, fingerprint } = call
  const now = call.createdAt.getTime()
  const load = await lockPool(tx, accountId)
  const own = isAgain ? await findOwn(tx, call, options.lease.owner) : null
  if (own !== null) return own
  const verdict = await findKeyHolder(tx, { accountId, key, fingerprint, now })
  const known = answerFromKey(verdict, call, load)
  if (known !== null) return known
  const before = verdict.use === 'interrupted' ? verdict.call : null
  const id = before?.id ?? call.id
  const attempt = before === null ? 0 : before.attempt + 1
  const hold = toCallHold(call, callHoldId(id, attempt))
  const purses = hold === null ? null : await lockPurses(tx, [hold])
  if (purses !== null && hold !== null && !purses.canHold(hold)) return { outcome: 'no_credits' }
  if (!options.isValid) return { outcome: 'invalid' }
  const verdictOfPool = judgePool(load, call, limits)
  if (verdictOfPool !== 'free') return { outcome: verdictOfPool, standing: toStanding(load) }
  if (purses !== null && hold !== null) purses.hold(hold)
  const [standing, [seq, fence]] = await Promise.all([
    enterPool(tx, call),
    writeCall(tx, admission, before),
    purses?.write(),
  ])
  return { outcome: 'admitted', ref: { seq, id, accountId, owner: options.lease.owner, fence }, standing }
}

/** The call itself, when a try whose answer was lost let it in. */
async function findOwn(tx: Queryable, { id, accountId }: NewCall, owner: string): Promise<AdmitOutcome | null> {
  const row = await tx.get(FIND_OWN, [id, owner])
  if (row === undefined) return null
  const [seq, fence] = row
  return { outcome: 'admitted', ref: { seq, id, accountId, owner, fence }, standing: await readStanding(tx, accountId) }
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
      const { seq, id, model } = verdict.call
      return { outcome: 'running', ref: { seq, id, accountId }, modelId: model, standing }
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

const INSERT = statement<[seq: number, fence: number]>(
  'calls.admit',
  `INSERT INTO router_call (id, account_id, key, fingerprint, queued, state, model, base_url, created_at, expires_at,
     started_at, hold_micros, spend_micros, costly, owner, lease_until, fence, job_id)
   VALUES ($1, $2, $3, $4, false, 'running', $5, $6, $7, $8, $7, $9, $10, $11, $12, $13, 1, $14) RETURNING seq, fence`,
)
const RESUME = statement<[seq: number, fence: number]>(
  'calls.resume',
  `UPDATE router_call SET state = 'running', attempt = attempt + 1, base_url = $2, started_at = $3, hold_micros = $4,
     spend_micros = $5, costly = $6, owner = $7, lease_until = $8, fence = fence + 1, stop_asked = false
   WHERE seq = $1 RETURNING seq, fence`,
)

async function writeCall(
  tx: Queryable,
  { call, options: { lease } }: Admission,
  before: KeyedCall | null,
): Promise<[seq: number, fence: number]> {
  const { baseUrl, holdMicros, spendMicros, isCostly } = call
  const createdAt = call.createdAt.getTime()
  const money = [holdMicros, spendMicros, isCostly]
  const held = [lease.owner, lease.until.getTime()]
  const { id, accountId, key, fingerprint, modelId, expiresAt } = call
  const row =
    before === null
      ? await tx.get(INSERT, [
          ...[id, accountId, key, fingerprint, modelId, baseUrl, createdAt, expiresAt.getTime()],
          ...[...money, ...held, call.jobId ?? null],
        ])
      : await tx.get(RESUME, [before.seq, baseUrl, createdAt, ...money, ...held])
  if (row === undefined) throw new Error(`The call ${id} was not written.`)
  return row
}
