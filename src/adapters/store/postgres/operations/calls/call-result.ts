/** The stored end of a call: written once, read whenever its key or its request is asked for again. */
import type { ResultFields } from '../../../call-records.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { addBytes } from '../assets/account-storage.ts'
import { offerBlobs } from '../assets/blob-references.ts'

interface StoredResult {
  readonly fields: ResultFields
  /** Until when it may be told again; null: as long as it is stored. */
  readonly replayUntil: number | null
}

interface NewResult {
  readonly seq: number
  readonly accountId: string
  readonly fields: ResultFields
  readonly at: number
  readonly replayUntil: number | null
}

const SIZE = statement<[sizeBytes: number]>(
  'calls.size-of-result',
  'SELECT size_bytes FROM router_result WHERE seq = $1',
)
const INSERT = statement(
  'calls.insert-result',
  `INSERT INTO router_result
     (seq, account_id, content_type, body, hash, size_bytes, cost_micros, refusal, finished_at, replay_until)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
   ON CONFLICT (seq) DO UPDATE SET content_type = excluded.content_type, body = excluded.body, hash = excluded.hash,
     size_bytes = excluded.size_bytes, cost_micros = excluded.cost_micros, refusal = excluded.refusal,
     finished_at = excluded.finished_at, replay_until = excluded.replay_until`,
)
const FIND = statement<[replayUntil: number | null, ...fields: ResultFields]>(
  'calls.find-result',
  `SELECT replay_until, content_type, body, hash, size_bytes, cost_micros, refusal FROM router_result WHERE seq = $1`,
)
const REMOVE = statement<[accountId: string | null, hash: string | null, sizeBytes: number]>(
  'calls.remove-results',
  'DELETE FROM router_result WHERE seq = ANY($1::bigint[]) RETURNING account_id, hash, size_bytes',
)
const DROP_INPUT = statement<[hash: string | null, sizeBytes: number]>(
  'calls.drop-input',
  'DELETE FROM router_input WHERE seq = $1 RETURNING hash, size_bytes',
)

export async function insertResult(tx: Queryable, result: NewResult): Promise<void> {
  const { seq, accountId, fields, at, replayUntil } = result
  const [contentType, body, hash, sizeBytes, costMicros, refusal] = fields
  const [before] = await Promise.all([
    tx.get(SIZE, [seq]),
    tx.run(INSERT, [seq, accountId, contentType, toBytes(body), hash, sizeBytes, costMicros, refusal, at, replayUntil]),
  ])
  const added = sizeBytes - (before?.[0] ?? 0)
  if (added !== 0) await addBytes(tx, [[accountId, added]])
}

export async function findResult(db: Queryable, seq: number): Promise<StoredResult | null> {
  const row = await db.get(FIND, [seq])
  if (row === undefined) return null
  const [replayUntil, contentType, body, ...rest] = row
  return { fields: [contentType, fromBytes(body), ...rest], replayUntil }
}

/** Their bytes become candidates for collection. */
export async function removeResults(tx: Queryable, seqs: readonly number[], now: number): Promise<void> {
  if (seqs.length === 0) return
  const removed = await tx.all(REMOVE, [seqs])
  const freed = new Map<string, number>()
  for (const [accountId, , sizeBytes] of removed) {
    if (accountId !== null && sizeBytes > 0) freed.set(accountId, (freed.get(accountId) ?? 0) - sizeBytes)
  }
  await addBytes(tx, [...freed])
  await offerBlobs(tx, toBlobs(removed.map(([, hash, sizeBytes]) => [hash, sizeBytes])), now)
}

/** The body of a queued call, which is needed no longer. */
export async function dropInput(tx: Queryable, seq: number, now: number): Promise<void> {
  await offerBlobs(tx, toBlobs(await tx.all(DROP_INPUT, [seq])), now)
}

function toBlobs(rows: readonly (readonly [hash: string | null, sizeBytes: number])[]) {
  return rows.flatMap(([hash, sizeBytes]) => (hash === null ? [] : [{ hash, sizeBytes }]))
}

export function toBytes(bytes: Uint8Array | null): Buffer | null {
  return bytes === null ? null : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** A copy: what the connection gives out is a view of all that it received. */
export function fromBytes(bytes: Uint8Array | null): Uint8Array | null {
  return bytes === null ? null : new Uint8Array(bytes)
}
