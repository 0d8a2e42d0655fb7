/** What a key was used for. A record past its life is removed here, so that a late sweep makes no difference. */
import type { DatabaseSync } from 'node:sqlite'
import type { KeyedRequest, KeyUse } from '../../../rows/key-use.ts'
import { prepareRows } from '../statement.ts'
import { type CallResults, prepareCallResults } from './call-result.ts'

export type KeyVerdict = KeyUse<KeyedCall>

export interface KeyedCall {
  readonly seq: number
  readonly id: string
  readonly queued: number
  readonly model: string
  readonly attempt: number
}

type Row = [
  seq: number,
  id: string,
  fingerprint: string,
  queued: number,
  state: string,
  model: string,
  expiresAt: number,
  attempt: number,
]

const FREE: KeyVerdict = { use: 'free' }
const UNUSABLE: KeyVerdict = { use: 'unusable' }
const ALIVE = new Set(['waiting', 'running'])

export function prepareFindKeyHolder(database: DatabaseSync): (request: KeyedRequest) => KeyVerdict {
  const results = prepareCallResults(database)
  const select = prepareRows<Row>(
    database,
    `SELECT seq, id, fingerprint, queued, state, model, expires_at, attempt FROM router_call
     WHERE account_id = ? AND key = ?`,
  )
  const remove = database.prepare('DELETE FROM router_call WHERE seq = ?')

  return ({ accountId, key, fingerprint, now }) => {
    const row = key === null ? undefined : select.get(accountId, key)
    if (row === undefined) return FREE
    const [seq, id, usedFor, queued, state, model, expiresAt, attempt] = row
    if (expiresAt <= now && !ALIVE.has(state)) {
      results.remove(seq, now)
      remove.run(seq)
      return FREE
    }
    if (usedFor !== fingerprint) return { use: 'other_request' }
    const call = { seq, id, queued, model, attempt }
    if (state === 'running' || state === 'waiting') return { use: state, call }
    if (state === 'interrupted') return { use: state, call, result: results.find(seq)?.fields ?? null }
    return state === 'done' ? toDone(results, call, now) : UNUSABLE
  }
}

function toDone(results: CallResults, { seq, id }: KeyedCall, now: number): KeyVerdict {
  const result = results.find(seq)
  if (result === null) return UNUSABLE
  const { fields, replayUntil } = result
  return replayUntil !== null && replayUntil <= now ? UNUSABLE : { use: 'done', id, result: fields }
}
