/** The stored end of a call: written once, read whenever its key or its request is asked for again. */
import type { DatabaseSync } from 'node:sqlite'
import type { ResultFields } from '../../../call-records.ts'
import { prepareOfferBlob } from '../assets/blob-references.ts'
import { prepareRows } from '../statement.ts'

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

type FindResult = (seq: number) => StoredResult | null

export interface CallResults {
  insert(result: NewResult): void
  readonly find: FindResult
  /** Its bytes become a candidate for collection. */
  remove(seq: number, now: number): void
}

export function prepareCallResults(database: DatabaseSync): CallResults {
  const insert = database.prepare(`
    INSERT OR REPLACE INTO router_result
      (seq, content_type, body, hash, size_bytes, cost_micros, refusal, finished_at, replay_until, account_id)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
  const remove = prepareRows<[hash: string | null, sizeBytes: number]>(
    database,
    'DELETE FROM router_result WHERE seq = ? RETURNING hash, size_bytes',
  )
  const offerBlob = prepareOfferBlob(database)
  return {
    insert({ seq, accountId, fields, at, replayUntil }) {
      insert.run(seq, ...fields, at, replayUntil, accountId)
    },
    find: prepareFindResult(database),
    remove(seq, now) {
      for (const [hash, sizeBytes] of remove.all(seq)) if (hash !== null) offerBlob({ hash, sizeBytes, now })
    },
  }
}

export function prepareFindResult(database: DatabaseSync): FindResult {
  const select = prepareRows<[replayUntil: number | null, ...fields: ResultFields]>(
    database,
    `SELECT replay_until, content_type, body, hash, size_bytes, cost_micros, refusal FROM router_result WHERE seq = ?`,
  )
  return (seq) => {
    const row = select.get(seq)
    if (row === undefined) return null
    const [replayUntil, ...fields] = row
    return { fields, replayUntil }
  }
}
