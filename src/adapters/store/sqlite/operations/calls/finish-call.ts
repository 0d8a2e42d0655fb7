/** Ends a call: its answer, its charge and its place in the pool, or nothing at all when it had ended before. */
import type { DatabaseSync } from 'node:sqlite'
import type { CallFate, CallFinish, CallRef } from '../../../../../domain/models/call-store.ts'
import { prepareOfferBlob } from '../assets/blob-references.ts'
import { prepareRows } from '../statement.ts'
import { prepareCallMoney, prepareCallPool } from './call-pool.ts'
import { prepareCallResults, type ResultFields, toResultFields } from './call-result.ts'

export type FinishInput = readonly [
  seq: number,
  id: string,
  fate: CallFate,
  result: ResultFields | null,
  chargeMicros: number,
  memo: string,
  at: number,
  replayUntil: number | null,
  expiresAt: number | null,
]

/** -1: nothing was charged to anybody; null: the call had ended already. */
export type FinishAnswer = number | null
const UNCHARGED = -1

export function toFinishInput(ref: CallRef, finish: CallFinish): FinishInput {
  return [
    ref.seq,
    ref.id,
    finish.fate,
    finish.end === null ? null : toResultFields(finish.end),
    finish.chargeMicros ?? 0,
    finish.memo,
    finish.at.getTime(),
    finish.replayUntil?.getTime() ?? null,
    finish.expiresAt?.getTime() ?? null,
  ]
}

export function toFinishOutcome(answer: FinishAnswer): { readonly chargedMicros: number | null } | null {
  return answer === null ? null : { chargedMicros: answer === UNCHARGED ? null : answer }
}

type Row = [
  accountId: string,
  key: string | null,
  queued: number,
  attempt: number,
  holdMicros: number | null,
  spendMicros: number,
  costly: number,
]

const STATE: Readonly<Record<Exclude<CallFate, 'forget'>, string>> = {
  keep: 'done',
  interrupt: 'interrupted',
  spend: 'unusable',
}

export function prepareFinishCall(database: DatabaseSync): (input: FinishInput) => FinishAnswer {
  const select = prepareRows<Row>(
    database,
    `SELECT account_id, key, queued, attempt, hold_micros, spend_micros, costly FROM router_call
     WHERE seq = ? AND id = ? AND state = 'running'`,
  )
  const update = database.prepare(
    `UPDATE router_call SET state = ?2, expires_at = coalesce(?3, expires_at) WHERE seq = ?1`,
  )
  const remove = database.prepare('DELETE FROM router_call WHERE seq = ?')
  const pool = prepareCallPool(database)
  const money = prepareCallMoney(database)
  const results = prepareCallResults(database)
  const dropInput = prepareDropInput(database)

  return ([seq, id, fate, result, chargeMicros, memo, at, replayUntil, expiresAt]) => {
    const row = select.get(seq, id)
    if (row === undefined) return null
    const [accountId, key, queued, attempt, holdMicros, spendMicros, costly] = row
    pool.leave({ accountId, costly, spendMicros })
    const charged = money.settle({ id, accountId, attempt, holdMicros }, { micros: chargeMicros, memo, at })
    if (queued === 1) dropInput(seq, at)
    // Without a key nobody can ask for it again, so that nothing needs to be remembered.
    if (fate === 'forget' || (key === null && queued === 0)) remove.run(seq)
    else {
      update.run(seq, STATE[fate], expiresAt)
      if (result !== null) results.insert({ seq, fields: result, at, replayUntil })
    }
    return charged ?? UNCHARGED
  }
}

export function prepareDropInput(database: DatabaseSync): (seq: number, now: number) => void {
  const remove = prepareRows<[hash: string | null, sizeBytes: number]>(
    database,
    'DELETE FROM router_input WHERE seq = ? RETURNING hash, size_bytes',
  )
  const offerBlob = prepareOfferBlob(database)
  return (seq, now) => {
    for (const [hash, sizeBytes] of remove.all(seq)) if (hash !== null) offerBlob({ hash, sizeBytes, now })
  }
}
