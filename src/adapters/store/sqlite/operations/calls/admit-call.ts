/**
 * Lets a call in, or says what stands against it, in the order of the contract: the record of its key, credits, the input,
 * the call pool, the ceiling of committed spend. Only a call that passes all of them leaves anything behind.
 */
import type { DatabaseSync } from 'node:sqlite'
import type { AdmitOptions, AdmitOutcome, CallLimits, NewCall } from '../../../../../domain/models/calls/call-store.ts'
import { type ResultFields, toCallEnd } from '../../../call-records.ts'
import { createPacking, type Packed } from '../packed.ts'
import { prepareRows } from '../statement.ts'
import { type KeyedCall, type KeyVerdict, prepareFindKeyHolder } from './call-key.ts'
import { type PoolEntry, type PoolLimits, prepareCallMoney, prepareCallPool, type Standing } from './call-pool.ts'

interface Admission extends PoolLimits, PoolEntry {
  readonly id: string
  readonly key: string | null
  readonly fingerprint: string
  readonly model: string
  readonly keyId: string | null
  readonly jobId: string | null
  readonly baseUrl: string
  readonly createdAt: number
  readonly expiresAt: number
  readonly holdMicros: number | null
  readonly mayResubmit: boolean
  readonly isValid: boolean
  readonly owner: string
  readonly leaseUntil: number
}

const ADMISSION = createPacking<Admission>({
  ...{ id: true, accountId: true, key: true, fingerprint: true, model: true, baseUrl: true, createdAt: true },
  ...{ expiresAt: true, holdMicros: true, spendMicros: true, costly: true, mayResubmit: true, isValid: true },
  ...{ maxCalls: true, maxCostlyCalls: true, ceilingMicros: true, owner: true, leaseUntil: true, keyId: true },
  jobId: true,
})

type AdmitAnswer =
  | readonly ['admitted', seq: number, id: string, fence: number, running: number, committedMicros: number]
  | readonly ['done', id: string, result: ResultFields, running: number, committedMicros: number]
  | readonly ['running', seq: number, id: string, model: string, running: number, committedMicros: number]
  | readonly ['waiting', seq: number, id: string]
  | readonly ['other_request' | 'unusable' | 'no_credits' | 'invalid']
  | readonly ['calls_exhausted' | 'spend_exhausted', running: number, committedMicros: number]

export function toAdmitInput(call: NewCall, limits: CallLimits, { isValid, lease }: AdmitOptions): Packed<Admission> {
  const { id, accountId, key, fingerprint, baseUrl, holdMicros, spendMicros, mayResubmit } = call
  const { maxCalls, maxCostlyCalls, ceilingMicros } = limits
  return ADMISSION.pack({
    ...{ id, accountId, key, fingerprint, baseUrl, holdMicros, spendMicros, mayResubmit, isValid },
    ...{ maxCalls, maxCostlyCalls, ceilingMicros },
    model: call.modelId,
    keyId: holdMicros === null ? null : (call.keyId ?? null),
    jobId: call.jobId ?? null,
    createdAt: call.createdAt.getTime(),
    expiresAt: call.expiresAt.getTime(),
    costly: Number(call.isCostly),
    owner: lease.owner,
    leaseUntil: lease.until.getTime(),
  })
}

interface Asker {
  readonly accountId: string
  readonly owner: string
}

export function toAdmitOutcome({ accountId, owner }: Asker, answer: AdmitAnswer): AdmitOutcome {
  switch (answer[0]) {
    case 'admitted': {
      const [outcome, seq, id, fence, runningCalls, committedMicros] = answer
      return { outcome, ref: { seq, id, accountId, owner, fence }, standing: { runningCalls, committedMicros } }
    }
    case 'done': {
      const [outcome, id, result, runningCalls, committedMicros] = answer
      return { outcome, id, end: toCallEnd(result), standing: { runningCalls, committedMicros } }
    }
    case 'running': {
      const [outcome, seq, id, modelId, runningCalls, committedMicros] = answer
      return { outcome, ref: { seq, id, accountId }, modelId, standing: { runningCalls, committedMicros } }
    }
    case 'waiting': {
      const [outcome, seq, id] = answer
      return { outcome, ref: { seq, id, accountId } }
    }
    case 'calls_exhausted':
    case 'spend_exhausted': {
      const [outcome, runningCalls, committedMicros] = answer
      return { outcome, standing: { runningCalls, committedMicros } }
    }
    case 'other_request':
    case 'unusable':
    case 'no_credits':
    case 'invalid': {
      const [outcome] = answer
      return { outcome }
    }
  }
}

/** What the key's record says, when that is the answer; null when the call may go on. */
function answerFromKey(verdict: KeyVerdict, mayResubmit: boolean, standing: () => Standing): AdmitAnswer | null {
  switch (verdict.use) {
    case 'free':
      return null
    case 'interrupted':
      if (mayResubmit) return null
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

export function prepareAdmitCall(database: DatabaseSync): (input: Packed<Admission>) => AdmitAnswer {
  const findKeyHolder = prepareFindKeyHolder(database)
  const pool = prepareCallPool(database)
  const money = prepareCallMoney(database)
  const write = prepareWriteCall(database)
  return (input) => {
    const call = ADMISSION.unpack(input)
    const { accountId, key, fingerprint, createdAt: now, holdMicros } = call
    const verdict = findKeyHolder({ accountId, key, fingerprint, now })
    const known = answerFromKey(verdict, call.mayResubmit, () => pool.look(call, call).standing)
    if (known !== null) return known
    const found = pool.look(call, call)
    if (!call.isValid || found.verdict !== 'free') {
      // An account that cannot pay is told so first.
      if (holdMicros !== null && !money.canPay(accountId, holdMicros)) return ['no_credits']
      return call.isValid && found.verdict !== 'free' ? [found.verdict, ...found.standing] : ['invalid']
    }
    const before = verdict.use === 'interrupted' ? verdict.call : null
    const id = before?.id ?? call.id
    const attempt = before === null ? 0 : before.attempt + 1
    const labels = { pool: null, model: call.model, keyId: call.keyId }
    if (!money.hold({ id, accountId, attempt, holdMicros }, now, labels)) return ['no_credits']
    const [running, committed] = pool.enter(call, found)
    const [seq, fence] = write(call, before)
    return ['admitted', seq, id, fence, running, committed]
  }
}

type WrittenCall = readonly [seq: number, fence: number]
const FIRST_FENCE = 1

function prepareWriteCall(database: DatabaseSync): (call: Admission, before: KeyedCall | null) => WrittenCall {
  const insert = database.prepare(`
    INSERT INTO router_call (id, account_id, key, fingerprint, queued, state, model, base_url, created_at, expires_at,
      started_at, hold_micros, spend_micros, costly, owner, lease_until, fence, job_id)
    VALUES (?1, ?2, ?3, ?4, 0, 'running', ?5, ?6, ?7, ?8, ?7, ?9, ?10, ?11, ?12, ?13, ${FIRST_FENCE}, ?14)`)
  const resume = prepareRows<[seq: number, fence: number]>(
    database,
    `UPDATE router_call SET state = 'running', attempt = attempt + 1, base_url = ?2, started_at = ?3, hold_micros = ?4,
       spend_micros = ?5, costly = ?6, owner = ?7, lease_until = ?8, fence = fence + 1, stop_asked = 0
     WHERE seq = ?1 RETURNING seq, fence`,
  )
  return (call, before) => {
    const { baseUrl, createdAt, holdMicros, spendMicros, costly, owner, leaseUntil } = call
    if (before !== null) {
      const row = resume.get(before.seq, baseUrl, createdAt, holdMicros, spendMicros, costly, owner, leaseUntil)
      if (row === undefined) throw new Error(`No call at ${before.seq}.`)
      return row
    }
    const { id, accountId, key, fingerprint, model, expiresAt, jobId } = call
    const keyed = [id, accountId, key, fingerprint] as const
    const money = [holdMicros, spendMicros, costly] as const
    const row = insert.run(...keyed, model, baseUrl, createdAt, expiresAt, ...money, owner, leaseUntil, jobId)
    return [Number(row.lastInsertRowid), FIRST_FENCE]
  }
}
