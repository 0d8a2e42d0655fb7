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

type Row = [accountId: string, attempt: number, holdMicros: number | null, spendMicros: number, costly: number]
type RareRow = [...Row, key: string | null, queued: number]

const STATE: Readonly<Record<Exclude<CallFate, 'forget'>, string>> = {
  keep: 'done',
  interrupt: 'interrupted',
  spend: 'unusable',
}

const IS_HELD = `seq = ?1 AND id = ?2 AND state = 'running' AND owner = ?3 AND fence = ?4`
const ROW = 'account_id, attempt, hold_micros, spend_micros, costly'

export function prepareFinishCall(database: DatabaseSync): (input: Packed<Finish>) => FinishAnswer {
  const finishRarely = prepareFinishRarely(database)
  // Nearly every call has a key and nobody who is told of its end: found and changed in one statement. What has an index is left as it is.
  const end = prepareRows<Row>(
    database,
    `UPDATE router_call SET state = ?5 WHERE ${IS_HELD} AND key IS NOT NULL AND queued = 0 RETURNING ${ROW}`,
  )
  const results = prepareCallResults(database)
  const settle = prepareSettle(database)

  return (input) => {
    const finish = FINISH.unpack(input)
    const { seq, id, owner, fence, fate, result, at, replayUntil, expiresAt } = finish
    const row = fate === 'forget' || expiresAt !== null ? undefined : end.get(seq, id, owner, fence, STATE[fate])
    if (row === undefined) return finishRarely(finish)
    if (result !== null) results.insert({ seq, accountId: row[0], fields: fromSent(result), at, replayUntil })
    return settle(row, finish)
  }
}

/** Queued calls, calls without a key, and those that are forgotten. */
function prepareFinishRarely(database: DatabaseSync): (finish: Finish) => FinishAnswer {
  const select = prepareRows<RareRow>(database, `SELECT ${ROW}, key, queued FROM router_call WHERE ${IS_HELD}`)
  const update = database.prepare(
    `UPDATE router_call SET state = ?2, expires_at = coalesce(?3, expires_at) WHERE seq = ?1`,
  )
  const remove = database.prepare('DELETE FROM router_call WHERE seq = ?')
  const results = prepareCallResults(database)
  const settle = prepareSettle(database)
  const dropInput = prepareDropInput(database)

  return (finish) => {
    const { seq, id, owner, fence, fate, result, at, replayUntil, expiresAt } = finish
    const found = select.get(seq, id, owner, fence)
    if (found === undefined) return null
    const [accountId, attempt, holdMicros, spendMicros, costly, key, queued] = found
    if (queued === 1) dropInput(seq, at)
    // Nobody can ask for a call without a key again, so nothing of it needs to be remembered.
    if (fate === 'forget' || (key === null && queued === 0)) remove.run(seq)
    else {
      // Before the state: whoever is told of the end is told of its result.
      if (result !== null) results.insert({ seq, accountId, fields: fromSent(result), at, replayUntil })
      update.run(seq, STATE[fate], expiresAt)
    }
    return settle([accountId, attempt, holdMicros, spendMicros, costly], finish)
  }
}

/** Takes the call out of its account's pool, and charges for it. */
function prepareSettle(database: DatabaseSync): (row: Row, finish: Finish) => number {
  const pool = prepareCallPool(database)
  const money = prepareCallMoney(database)
  return ([accountId, attempt, holdMicros, spendMicros, costly], { id, chargeMicros, memo, at }) => {
    pool.leave({ accountId, costly, spendMicros })
    return money.settle({ id, accountId, attempt, holdMicros }, { micros: chargeMicros, memo, at }) ?? UNCHARGED
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
