/** The progress of running calls, which lets another process go on with them, and the end of records past their life. */
import type { DatabaseSync } from 'node:sqlite'
import { TOMBSTONE_MS } from '../../../call-records.ts'
import { type ToldRow, toldSql } from '../../../rows/told-rows.ts'
import { prepareRows } from '../statement.ts'
import { prepareCallResults } from './call-result.ts'

interface ProgressInput {
  readonly seq: number
  readonly id: string
  readonly owner: string
  readonly fence: number
  /** JSON. */
  readonly progress: string
  readonly task: string | null
}

/** False when the call has ended or is another node's. */
export function prepareKeepProgress(database: DatabaseSync): (input: ProgressInput) => boolean {
  const update = database.prepare(
    `UPDATE router_call SET progress = ?5, task = ?6 WHERE seq = ?1 AND id = ?2 AND state = 'running' AND owner = ?3 AND fence = ?4`,
  )
  return ({ seq, id, owner, fence, progress, task }) => update.run(seq, id, owner, fence, progress, task).changes === 1
}

interface ToldInput {
  readonly accountId: string
  /** One of the two. */
  readonly key: string | null
  readonly task: string | null
}

export function prepareFindTold(database: DatabaseSync): (input: ToldInput) => ToldRow | null {
  const byKey = prepareRows<ToldRow>(database, toldSql({ by: 'key', account: '?1', value: '?2' }))
  const byTask = prepareRows<ToldRow>(database, toldSql({ by: 'task', account: '?1', value: '?2' }))
  return ({ accountId, key, task }) => (key === null ? byTask.get(accountId, task) : byKey.get(accountId, key)) ?? null
}

export function prepareSweepCalls(
  database: DatabaseSync,
): (sweep: { readonly now: number; readonly limit: number }) => number {
  const select = prepareRows<[seq: number, queued: number, state: string]>(
    database,
    `SELECT seq, queued, state FROM router_call
     WHERE expires_at <= ? AND state NOT IN ('running', 'waiting') ORDER BY expires_at LIMIT ?`,
  )
  const bury = database.prepare(
    `UPDATE router_call SET state = 'gone', key = NULL, progress = NULL, expires_at = ?2 WHERE seq = ?1`,
  )
  const remove = database.prepare('DELETE FROM router_call WHERE seq = ?')
  const results = prepareCallResults(database)
  return ({ now, limit }) => {
    const rows = select.all(now, limit)
    for (const [seq, queued, state] of rows) {
      results.remove(seq, now)
      if (queued === 1 && state !== 'gone') bury.run(seq, now + TOMBSTONE_MS)
      else remove.run(seq)
    }
    return rows.length
  }
}
