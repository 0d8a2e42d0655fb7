/**
 * What a key was used for. A record past its life is removed here, so that a late sweep makes no difference. The account's pool is
 * locked before, so that of two requests with one key the second sees what the first one wrote.
 */
import type { KeyedRequest, KeyUse } from '../../../rows/key-use.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { findResult, removeResults } from './call-result.ts'

export type KeyVerdict = KeyUse<KeyedCall>

export interface KeyedCall {
  readonly seq: number
  readonly id: string
  readonly isQueued: boolean
  readonly model: string
  readonly attempt: number
  readonly owner: string | null
  readonly fence: number
}

type Row = [
  seq: number,
  id: string,
  fingerprint: string,
  isQueued: boolean,
  state: string,
  model: string,
  expiresAt: number,
  attempt: number,
  owner: string | null,
  fence: number,
]

const FREE: KeyVerdict = { use: 'free' }
const UNUSABLE: KeyVerdict = { use: 'unusable' }
const ALIVE = new Set(['waiting', 'running'])

// Locked, because a sweep could remove it meanwhile.
const FIND = statement<Row>(
  'calls.find-key',
  `SELECT seq, id, fingerprint, queued, state, model, expires_at, attempt, owner, fence FROM router_call
   WHERE account_id = $1 AND key = $2 FOR NO KEY UPDATE`,
)
const REMOVE = statement('calls.remove', 'DELETE FROM router_call WHERE seq = ANY($1::bigint[])')

export async function findKeyHolder(tx: Queryable, request: KeyedRequest): Promise<KeyVerdict> {
  const { accountId, key, fingerprint, now } = request
  const row = key === null ? undefined : await tx.get(FIND, [accountId, key])
  if (row === undefined) return FREE
  const [seq, id, usedFor, isQueued, state, model, expiresAt, attempt, owner, fence] = row
  if (expiresAt <= now && !ALIVE.has(state)) {
    await removeCalls(tx, [seq], now)
    return FREE
  }
  if (usedFor !== fingerprint) return { use: 'other_request' }
  const call = { seq, id, isQueued, model, attempt, owner, fence }
  if (state === 'running' || state === 'waiting') return { use: state, call }
  if (state !== 'interrupted' && state !== 'done') return UNUSABLE
  const result = await findResult(tx, seq)
  if (state === 'interrupted') return { use: state, call, result: result?.fields ?? null }
  const isTold = result !== null && (result.replayUntil === null || result.replayUntil > now)
  return isTold ? { use: 'done', id, result: result.fields } : UNUSABLE
}

/** With their results. */
export async function removeCalls(tx: Queryable, seqs: readonly number[], now: number): Promise<void> {
  if (seqs.length === 0) return
  await tx.run(REMOVE, [seqs])
  await removeResults(tx, seqs, now)
}
