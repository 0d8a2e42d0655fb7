/**
 * The rows of many new jobs of one account, in one statement for each table that every job has a row in: that takes half the time of
 * a statement for each row. Their order is that of the queue.
 */
import type { DatabaseSync } from 'node:sqlite'
import { prepareInsertParts, type Submit } from '../jobs/submit-job.ts'
import { prepareRows } from '../statement.ts'
import { FOLLOWED, prepareTellQueued } from '../webhooks/tell-queued.ts'

// Graphs are handed over as one text, which is held twice meanwhile.
const MAX_LENGTH = 4 * 1024 * 1024

export function prepareInsertJobs(database: DatabaseSync): (submits: readonly Submit[]) => void {
  const findNext = prepareRows<[seq: number]>(database, 'SELECT coalesce(max(seq), 0) + 1 FROM job')
  const findFollower = prepareRows<[1]>(
    database,
    `SELECT 1 FROM webhook_endpoint WHERE account_id = ? AND kind = 'account' LIMIT 1`,
  )
  const tellQueued = prepareTellQueued(database)
  const insertJobs = database.prepare(`
    INSERT INTO job (seq, id, account_id, pool, status, priority, created_at, expires_at, metadata, needs_extra_data, input_count,
      price_second, price_minimum, needs, recipe, title, hook)
    SELECT ?1 + key, value ->> 0, ?3, ?4, 'queued', value ->> 1, ?5, ?6, value ->> 2, value ->> 3, value ->> 4, ?7, ?8, value ->> 5,
      value ->> 6, value ->> 7, coalesce(value ->> 8, ?9) FROM json_each(?2)`)
  const insertWorkflows = database.prepare(`
    INSERT INTO job_workflow (seq, text, origin) SELECT ?1 + key, value ->> 0, value ->> 1 FROM json_each(?2)`)
  const insertParts = prepareInsertParts(database)

  function insertTexts(first: number, submits: readonly Submit[]): void {
    let from = 0
    let length = 0
    const write = (to: number) => {
      const texts = submits.slice(from, to).map(({ workflow, origin }) => [workflow, origin])
      if (texts.length > 0) insertWorkflows.run(first + from, JSON.stringify(texts))
      from = to
      length = 0
    }
    for (const [index, { workflow, origin }] of submits.entries()) {
      length += workflow.length + (origin?.length ?? 0)
      if (length > MAX_LENGTH) write(index + 1)
    }
    write(submits.length)
  }

  return (submits) => {
    const [one] = submits
    const next = findNext.get()?.[0]
    if (one === undefined || next === undefined) return
    const { accountId, pool, createdAt, expiresAt } = one
    const [perSecondMicros, minimumMicros] = one.price ?? [null, null]
    const mark = findFollower.get(accountId) === undefined ? null : FOLLOWED
    const rows = submits.map((submit) => [
      ...[submit.id, submit.priority, submit.metadata, submit.extraDataFlags, submit.inputs.length, submit.needs],
      ...[submit.recipe?.[0] ?? null, submit.title, submit.hook?.id ?? null],
    ])
    const times = [createdAt, expiresAt] as const
    const prices = [perSecondMicros, minimumMicros] as const
    insertJobs.run(next, JSON.stringify(rows), accountId, pool, ...times, ...prices, mark)
    insertTexts(next, submits)
    for (const [index, submit] of submits.entries()) insertParts(next + index, submit)
    const isTold = mark !== null || submits.some(({ hook }) => hook !== null)
    if (isTold) tellQueued(next, next + submits.length - 1)
  }
}
