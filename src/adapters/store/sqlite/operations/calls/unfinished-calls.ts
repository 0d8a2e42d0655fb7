/** Calls that a process left in the middle, the progress that lets another one go on, and the end of records past their life. */
import type { DatabaseSync } from 'node:sqlite'
import type { CallProgress, UnfinishedCall } from '../../../../../domain/models/calls/call-store.ts'
import { prepareRows } from '../statement.ts'
import { prepareCallResults } from './call-result.ts'

interface ProgressInput {
  readonly seq: number
  readonly id: string
  /** JSON. */
  readonly progress: string
}

export function prepareKeepProgress(database: DatabaseSync): (input: ProgressInput) => void {
  const update = database.prepare(
    `UPDATE router_call SET progress = ?3 WHERE seq = ?1 AND id = ?2 AND state = 'running'`,
  )
  return ({ seq, id, progress }) => {
    update.run(seq, id, progress)
  }
}

type UnfinishedRow = [
  seq: number,
  id: string,
  accountId: string,
  key: string | null,
  queued: number,
  model: string,
  baseUrl: string,
  startedAt: number,
  progress: string | null,
]

export function prepareUnfinishedCalls(
  database: DatabaseSync,
): (query: { readonly after: number; readonly limit: number }) => UnfinishedRow[] {
  const select = prepareRows<UnfinishedRow>(
    database,
    `SELECT seq, id, account_id, key, queued, model, base_url, started_at, progress FROM router_call
     WHERE state = 'running' AND seq > ? ORDER BY seq LIMIT ?`,
  )
  return ({ after, limit }) => select.all(after, limit)
}

export function toUnfinishedCall([
  seq,
  id,
  accountId,
  key,
  queued,
  model,
  baseUrl,
  startedAt,
  progress,
]: UnfinishedRow): UnfinishedCall {
  return {
    ref: { seq, id, accountId },
    modelId: model,
    baseUrl,
    progress: progress === null ? null : (JSON.parse(progress) as CallProgress),
    isQueued: queued === 1,
    isKeyed: key !== null,
    startedAt: new Date(startedAt),
  }
}

// How long the id of a queued call is known after its result is gone, so that its owner is told so and not that it never was.
const TOMBSTONE_MS = 7 * 24 * 60 * 60 * 1000

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
