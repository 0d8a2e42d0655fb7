/**
 * Ends a call: stores its answer, charges for it and takes it out of the pool; does nothing when it had ended before, or is
 * another node's now.
 */
import type { DatabaseSync } from 'node:sqlite'
import type { CallFate, CallFinish, HeldCall } from '../../../../../domain/models/calls/call-store.ts'
import { type ResultFields, toResultFields } from '../../../call-records.ts'
import { prepareOfferBlob } from '../assets/blob-references.ts'
import { createPacking, type Packed } from '../packed.ts'
import { prepareRows } from '../statement.ts'
import { prepareCallMoney, prepareCallPool } from './call-pool.ts'
import { prepareCallResults } from './call-result.ts'

interface Finish {
  readonly seq: number
  readonly id: string
  readonly owner: string
  readonly fence: number
  readonly fate: CallFate
  readonly result: SentResult | null
  readonly chargeMicros: number
  readonly memo: string
  readonly at: number
  readonly replayUntil: number | null
  readonly expiresAt: number | null
}

/** On its way to the writer: bytes as a text of one letter each, which costs both threads less than a buffer. */
type SentResult = readonly [body: string | null, fields: ResultFields]

function toSent([contentType, body, ...others]: ResultFields): SentResult {
  const text = body === null ? null : Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('latin1')
  return [text, [contentType, null, ...others]]
}

function fromSent([text, fields]: SentResult): ResultFields {
  if (text === null) return fields
  const [contentType, , ...others] = fields
  return [contentType, Buffer.from(text, 'latin1'), ...others]
}

const FINISH = createPacking<Finish>({
  ...{ seq: true, id: true, owner: true, fence: true, fate: true, result: true, chargeMicros: true },
  ...{ memo: true, at: true, replayUntil: true, expiresAt: true },
})

/** -1: nothing was charged to anybody; null: the call had ended already, or is another node's. */
type FinishAnswer = number | null
const UNCHARGED = -1

export function toFinishInput({ seq, id, owner, fence }: HeldCall, finish: CallFinish): Packed<Finish> {
  const { fate, end, memo } = finish
  return FINISH.pack({
    ...{ seq, id, owner, fence, fate, memo },
    result: end === null ? null : toSent(toResultFields(end)),
    chargeMicros: finish.chargeMicros ?? 0,
    at: finish.at.getTime(),
    replayUntil: finish.replayUntil?.getTime() ?? null,
    expiresAt: finish.expiresAt?.getTime() ?? null,
  })
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

export function prepareFinishCall(database: DatabaseSync): (input: Packed<Finish>) => FinishAnswer {
  const select = prepareRows<Row>(
    database,
    `SELECT account_id, key, queued, attempt, hold_micros, spend_micros, costly FROM router_call
     WHERE seq = ? AND id = ? AND state = 'running' AND owner = ? AND fence = ?`,
  )
  // An index over what is set is written even where the value stays: only what changes is named.
  const end = database.prepare('UPDATE router_call SET state = ?2 WHERE seq = ?1')
  const endUntil = database.prepare('UPDATE router_call SET state = ?2, expires_at = ?3 WHERE seq = ?1')
  const remove = database.prepare('DELETE FROM router_call WHERE seq = ?')
  const pool = prepareCallPool(database)
  const money = prepareCallMoney(database)
  const results = prepareCallResults(database)
  const dropInput = prepareDropInput(database)

  return (input) => {
    const { seq, id, owner, fence, fate, result, chargeMicros, memo, at, replayUntil, expiresAt } = FINISH.unpack(input)
    const row = select.get(seq, id, owner, fence)
    if (row === undefined) return null
    const [accountId, key, queued, attempt, holdMicros, spendMicros, costly] = row
    pool.leave({ accountId, costly, spendMicros })
    const charged = money.settle({ id, accountId, attempt, holdMicros }, { micros: chargeMicros, memo, at })
    if (queued === 1) dropInput(seq, at)
    // Nobody can ask for a call without a key again, so nothing of it needs to be remembered.
    if (fate === 'forget' || (key === null && queued === 0)) remove.run(seq)
    else {
      // Before the state: whoever is told of the end is told of its result.
      if (result !== null) results.insert({ seq, accountId, fields: fromSent(result), at, replayUntil })
      if (expiresAt === null) end.run(seq, STATE[fate])
      else endUntil.run(seq, STATE[fate], expiresAt)
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
