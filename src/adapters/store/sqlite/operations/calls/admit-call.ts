/**
 * Lets a call in, or says what stands against it, in the order of the contract: the record of its key, credits, the input,
 * the call pool, the ceiling of committed spend. Only a call that passes all of them leaves anything behind.
 */
import type { DatabaseSync } from 'node:sqlite'
import type { AdmitOutcome, CallLimits, NewCall } from '../../../../../domain/models/call-store.ts'
import { prepareRows } from '../statement.ts'
import { type KeyHolder, type KeyVerdict, prepareFindKeyHolder } from './call-key.ts'
import { type PoolLimits, prepareCallMoney, prepareCallPool, type Standing } from './call-pool.ts'
import { type ResultRow, toCallEnd } from './call-result.ts'

/** Flat, as everything that travels to the writer for each request. */
export type AdmitInput = readonly [
  id: string,
  accountId: string,
  key: string | null,
  fingerprint: string,
  model: string,
  baseUrl: string,
  createdAt: number,
  expiresAt: number,
  holdMicros: number | null,
  spendMicros: number,
  costly: number,
  mayResubmit: number,
  isValid: number,
  maxCalls: number | null,
  maxCostlyCalls: number | null,
  ceilingMicros: number | null,
]

export type AdmitAnswer =
  | readonly ['admitted', seq: number, id: string, running: number, committedMicros: number]
  | readonly ['done', id: string, result: ResultRow, running: number, committedMicros: number]
  | readonly ['running', seq: number, id: string, model: string, running: number, committedMicros: number]
  | readonly ['waiting', seq: number, id: string]
  | readonly ['other_request' | 'unusable' | 'no_credits' | 'invalid']
  | readonly ['calls_exhausted' | 'spend_exhausted', running: number, committedMicros: number]

export function toAdmitInput(call: NewCall, limits: CallLimits, isValid: boolean): AdmitInput {
  return [
    call.id,
    call.accountId,
    call.key,
    call.fingerprint,
    call.modelId,
    call.baseUrl,
    call.createdAt.getTime(),
    call.expiresAt.getTime(),
    call.holdMicros,
    call.spendMicros,
    Number(call.isCostly),
    Number(call.mayResubmit),
    Number(isValid),
    limits.maxCalls,
    limits.maxCostlyCalls,
    limits.ceilingMicros,
  ]
}

export function toAdmitOutcome(accountId: string, answer: AdmitAnswer): AdmitOutcome {
  switch (answer[0]) {
    case 'admitted': {
      const [outcome, seq, id, runningCalls, committedMicros] = answer
      return { outcome, ref: { seq, id, accountId }, standing: { runningCalls, committedMicros } }
    }
    case 'done':
      return {
        outcome: 'done',
        id: answer[1],
        end: toCallEnd(dropTime(answer[2])),
        standing: toStanding(answer[3], answer[4]),
      }
    case 'running': {
      const [outcome, seq, id, modelId, running, committed] = answer
      return { outcome, ref: { seq, id, accountId }, modelId, standing: toStanding(running, committed) }
    }
    case 'waiting':
      return { outcome: 'waiting', ref: { seq: answer[1], id: answer[2], accountId } }
    case 'calls_exhausted':
    case 'spend_exhausted':
      return { outcome: answer[0], standing: { runningCalls: answer[1], committedMicros: answer[2] } }
    case 'other_request':
    case 'unusable':
    case 'no_credits':
    case 'invalid':
      return { outcome: answer[0] }
  }
}

function toStanding(runningCalls: number, committedMicros: number) {
  return { runningCalls, committedMicros }
}

function dropTime([contentType, body, hash, sizeBytes, costMicros, refusal]: ResultRow) {
  return [contentType, body, hash, sizeBytes, costMicros, refusal] as const
}

/** What the key's record says, when that is the answer; null when the call may go on. */
function answerFromKey(verdict: KeyVerdict, mayResubmit: number, standing: () => Standing): AdmitAnswer | null {
  switch (verdict.use) {
    case 'free':
      return null
    case 'interrupted':
      if (mayResubmit === 1) return null
      return verdict.result === null ? ['unusable'] : ['done', verdict.call.id, verdict.result, ...standing()]
    case 'done':
      return ['done', verdict.id, verdict.result, ...standing()]
    case 'running':
      return ['running', verdict.call.seq, verdict.call.id, verdict.call.model, ...standing()]
    case 'waiting':
      return ['waiting', verdict.call.seq, verdict.call.id]
    case 'other_request':
    case 'unusable':
      return [verdict.use]
  }
}

export function prepareAdmitCall(database: DatabaseSync): (input: AdmitInput) => AdmitAnswer {
  const findKeyHolder = prepareFindKeyHolder(database)
  const pool = prepareCallPool(database)
  const money = prepareCallMoney(database)
  const write = prepareWriteCall(database)
  return (input) => {
    const [id, accountId, key, fingerprint, , , now, , holdMicros, spendMicros, costly, mayResubmit, isValid] = input
    const verdict = findKeyHolder({ accountId, key, fingerprint, now })
    const place = { accountId, costly, spendMicros }
    const known = answerFromKey(verdict, mayResubmit, () => pool.look(place, toLimits(input)).standing)
    if (known !== null) return known
    if (holdMicros !== null && !money.canPay(accountId, holdMicros)) return ['no_credits']
    if (isValid === 0) return ['invalid']
    const found = pool.look(place, toLimits(input))
    if (found.verdict !== 'free') return [found.verdict, ...found.standing]
    const before = verdict.use === 'interrupted' ? verdict.call : null
    const [running, committed]: Standing = pool.enter(place)
    const attempt = before === null ? 0 : before.attempt + 1
    money.hold({ id: before?.id ?? id, accountId, attempt, holdMicros }, now)
    const seq = write(input, before)
    return ['admitted', seq, before?.id ?? id, running, committed]
  }
}

function toLimits(input: AdmitInput): PoolLimits {
  return { maxCalls: input[13], maxCostlyCalls: input[14], ceilingMicros: input[15] }
}

function prepareWriteCall(database: DatabaseSync): (input: AdmitInput, before: KeyHolder | null) => number {
  const insert = database.prepare(`
    INSERT INTO router_call (id, account_id, key, fingerprint, queued, state, model, base_url, created_at, expires_at,
      started_at, hold_micros, spend_micros, costly)
    VALUES (?1, ?2, ?3, ?4, 0, 'running', ?5, ?6, ?7, ?8, ?7, ?9, ?10, ?11)`)
  const resume = prepareRows<[number]>(
    database,
    `UPDATE router_call SET state = 'running', attempt = attempt + 1, base_url = ?2, started_at = ?3, hold_micros = ?4,
       spend_micros = ?5, costly = ?6 WHERE seq = ?1 RETURNING seq`,
  )
  return (input, before) => {
    const [id, accountId, key, fingerprint, model, baseUrl, at, expiresAt, holdMicros, spendMicros, costly] = input
    if (before !== null) {
      resume.get(before.seq, baseUrl, at, holdMicros, spendMicros, costly)
      return before.seq
    }
    const row = insert.run(
      id,
      accountId,
      key,
      fingerprint,
      model,
      baseUrl,
      at,
      expiresAt,
      holdMicros,
      spendMicros,
      costly,
    )
    return Number(row.lastInsertRowid)
  }
}
