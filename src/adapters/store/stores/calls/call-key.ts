/**
 * What a key was used for. A record past its life is removed here, so that a late sweep makes no difference. The account's pool is
 * locked before, so that of two requests with one key the second sees what the first one wrote.
 */
import { get, run, type Steps } from '../../statements/operation.ts'
import { command, query } from '../../statements/statement.ts'
import { routerCall } from '../../tables/calls.ts'
import { pick, type RowOf } from '../../tables/table.ts'
import { findResult, removeResults, type StoredResult } from './call-result.ts'

interface KeyedRequest {
  readonly accountId: string
  readonly key: string | null
  readonly fingerprint: string
  readonly createdAt: Date
}

const keyed = pick(
  routerCall,
  'seq',
  'id',
  'fingerprint',
  'state',
  'modelId',
  'expiresAt',
  'attempt',
  'plan',
  'attemptIndex',
)
export type KeyedCall = RowOf<typeof keyed>

export type KeyVerdict =
  | { readonly use: 'free' }
  | { readonly use: 'other_request' | 'unusable' }
  | { readonly use: 'done'; readonly id: string; readonly result: StoredResult }
  | { readonly use: 'running' | 'waiting'; readonly call: KeyedCall }
  /** `result`: what the provider answered; null: it said nothing. */
  | { readonly use: 'interrupted'; readonly call: KeyedCall; readonly result: StoredResult | null }

// Locked, because a sweep could remove it meanwhile.
const FIND = query(
  'calls.findKey',
  keyed,
  (words) =>
    `SELECT ${keyed.columns} FROM router_call WHERE account_id = :accountId AND key = :key ${words.lock('NO KEY UPDATE')}`,
)
const REMOVE = command('calls.remove', (words) => `DELETE FROM router_call WHERE ${words.isIn('seq', ':seqs')}`)

export function* findKeyHolder({ accountId, key, fingerprint, createdAt: now }: KeyedRequest): Steps<KeyVerdict> {
  const call = key === null ? undefined : yield* get(FIND, { accountId, key })
  if (call === undefined) return { use: 'free' }
  const { seq, id, state } = call
  if (call.expiresAt <= now && state !== 'waiting' && state !== 'running') {
    yield* removeCalls([seq], now)
    return { use: 'free' }
  }
  if (call.fingerprint !== fingerprint) return { use: 'other_request' }
  if (state === 'running' || state === 'waiting') return { use: state, call }
  if (state !== 'interrupted' && state !== 'done') return { use: 'unusable' }
  const result = yield* findResult(seq)
  if (state === 'interrupted') return { use: state, call, result }
  const isTold = result !== null && (result.replayUntil === null || result.replayUntil > now)
  return isTold ? { use: 'done', id, result } : { use: 'unusable' }
}

/** With their results. */
export function* removeCalls(seqs: readonly number[], now: Date): Steps<void> {
  if (seqs.length === 0) return
  yield* run(REMOVE, { seqs })
  yield* removeResults(seqs, now)
}
