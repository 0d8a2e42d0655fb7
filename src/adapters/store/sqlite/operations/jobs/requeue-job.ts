/** A held job goes back to the queue, at its old place; it may exceed the queue's bound, for it was accepted once. */
import type { DatabaseSync } from 'node:sqlite'
import { prepareRows } from '../statement.ts'

export interface JobRequeue {
  readonly seq: number
  readonly accountId: string
  /** Attempts to give back: 1 when the run was not at fault. */
  readonly refundedAttempts: 0 | 1
}

/** Returns the job's new version. */
export type RequeueJob = (requeue: JobRequeue) => number

export function prepareRequeueJob(database: DatabaseSync): RequeueJob {
  const update = prepareRows<[number]>(
    database,
    `UPDATE job SET status = 'queued', lease_id = NULL, lease_until = NULL, attempt = attempt - ?2, version = version + 1
     WHERE seq = ?1 RETURNING version`,
  )
  const count = database.prepare('UPDATE account SET queued = queued + 1, running = running - 1 WHERE id = ?')
  return ({ seq, accountId, refundedAttempts }) => {
    const row = update.get(seq, refundedAttempts)
    if (row === undefined) throw new Error(`No job at ${seq}.`)
    count.run(accountId)
    return row[0]
  }
}
