/** The stored end of a call: written once, read whenever its key or its request is asked for again. */
import type { CallBody, CallEnd, StoredRefusal } from '../../../../domain/models/calls/call-store.ts'
import { all, get, run, type Steps, together } from '../../statements/operation.ts'
import { command, insertInto, postgresOnly, query, selectFrom, upsertInto } from '../../statements/statement.ts'
import { routerInput, routerResult } from '../../tables/calls.ts'
import { encode, omit, pick, type RowOf } from '../../tables/table.ts'
import { addBytes } from '../account-storage.ts'
import { offerBlobs } from '../blob-references.ts'

const result = omit(routerResult, 'seq', 'accountId', 'finishedAt')
const blob = pick(routerResult, 'hash', 'sizeBytes')
const owned = pick(routerResult, 'accountId', 'hash', 'sizeBytes')
const size = pick(routerResult, 'sizeBytes')

export type StoredResult = RowOf<typeof result>

const SIZE = query('calls.sizeOfResult', size, postgresOnly('SELECT size_bytes FROM router_result WHERE seq = :seq'))
const PUT = command('calls.putResult', upsertInto(routerResult))
const FIND = query('calls.findResult', result, selectFrom(routerResult, 'WHERE seq = :seq', result))
const REMOVE = query(
  'calls.removeResults',
  owned,
  (words) => `DELETE FROM router_result WHERE ${words.isIn('seq', ':seqs')} RETURNING ${owned.columns}`,
)
const ADD_INPUT = command('calls.addInput', insertInto(routerInput))
const DROP_INPUT = query('calls.dropInput', blob, `DELETE FROM router_input WHERE seq = :seq RETURNING ${blob.columns}`)

/** Small bodies are stored in the row, large ones as a blob. */
export function toCallBody({
  body,
  hash,
}: {
  readonly body: Uint8Array | null
  readonly hash: string | null
}): CallBody {
  return hash === null ? { kind: 'inline', bytes: body ?? new Uint8Array() } : { kind: 'blob', hash }
}

function fromCallBody(body: CallBody): { readonly body: Uint8Array | null; readonly hash: string | null } {
  return body.kind === 'inline' ? { body: body.bytes, hash: null } : { body: null, hash: body.hash }
}

export function toCallEnd({ contentType, costMicros, sizeBytes, refusal, served, ...stored }: StoredResult): CallEnd {
  if (refusal !== null) return { kind: 'refusal', refusal }
  const body = toCallBody(stored)
  return { kind: 'result', result: { contentType: contentType ?? '', body, sizeBytes, costMicros, served } }
}

function fromCallEnd(end: CallEnd): Omit<StoredResult, 'replayUntil'> {
  if (end.kind === 'refusal') return { ...NO_RESULT, refusal: end.refusal }
  const { contentType, body, sizeBytes, costMicros, served = null } = end.result
  return { contentType, ...fromCallBody(body), sizeBytes, costMicros, refusal: null, served }
}

const NO_RESULT = { contentType: null, body: null, hash: null, sizeBytes: 0, costMicros: null, served: null }

interface NewResult {
  readonly seq: number
  readonly accountId: string
  readonly end: CallEnd
  readonly at: Date
  readonly replayUntil: Date | null
}

export function* putResult({ seq, accountId, end, at, replayUntil }: NewResult): Steps<void> {
  const fields = fromCallEnd(end)
  const [before] = yield* together(
    get(SIZE, { seq }),
    run(PUT, encode(routerResult, { seq, accountId, ...fields, finishedAt: at, replayUntil })),
  )
  const added = fields.sizeBytes - (before?.sizeBytes ?? 0)
  if (added !== 0) yield* addBytes([{ accountId, bytes: added }])
}

export function* findResult(seq: number): Steps<StoredResult | null> {
  return (yield* get(FIND, { seq })) ?? null
}

/** Their bytes become candidates for collection. */
export function* removeResults(seqs: readonly number[], now: Date): Steps<void> {
  if (seqs.length === 0) return
  const removed = yield* all(REMOVE, { seqs })
  const freed = new Map<string, number>()
  for (const { accountId, sizeBytes } of removed) {
    if (accountId !== null && sizeBytes > 0) freed.set(accountId, (freed.get(accountId) ?? 0) - sizeBytes)
  }
  yield* addBytes([...freed].map(([accountId, bytes]) => ({ accountId, bytes })))
  yield* offer(removed, now)
}

export function* addInput(seq: number, body: CallBody, sizeBytes: number): Steps<void> {
  yield* run(ADD_INPUT, encode(routerInput, { seq, ...fromCallBody(body), sizeBytes }))
}

/** The body of a queued call, which is needed no longer. */
export function* dropInput(seq: number, now: Date): Steps<void> {
  yield* offer(yield* all(DROP_INPUT, { seq }), now)
}

function* offer(rows: readonly RowOf<typeof blob>[], now: Date): Steps<void> {
  yield* offerBlobs(
    rows.flatMap(({ hash, sizeBytes }) => (hash === null ? [] : [{ hash, sizeBytes }])),
    now,
  )
}

/** Why a call that never reached a provider ended. */
export const CANCELED: StoredRefusal = {
  refusal: 'cancelled',
  message: 'the request was cancelled before it ran; nothing was charged',
  upstreamStatus: null,
  failures: null,
}
export const WAITED: StoredRefusal = {
  refusal: 'waited_too_long',
  message: 'the request waited longer than this service lets it; it never ran and nothing was charged',
  upstreamStatus: null,
  failures: null,
}
