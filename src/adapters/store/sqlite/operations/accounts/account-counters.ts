/** Accounts and their counters, and the counts of jobs by status that follow from the counters. */
import type { DatabaseSync } from 'node:sqlite'
import type { Account } from '../../../../../domain/accounts/account.ts'
import type { AccountUse } from '../../../../../domain/accounts/account-store.ts'
import type { JobStatus } from '../../../../../domain/jobs/transitions.ts'
import { prepareRows } from '../statement.ts'

export function preparePutAccount(database: DatabaseSync): (account: Account) => void {
  const upsert = database.prepare(`
    INSERT INTO account (id, max_running, max_queued) VALUES (?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET max_running = excluded.max_running, max_queued = excluded.max_queued`)
  return ({ id, maxRunning, maxQueued }) => {
    upsert.run(id, maxRunning, maxQueued)
  }
}

export function prepareFindUse(database: DatabaseSync): (accountId: string) => AccountUse | null {
  const select = prepareRows<[number, number]>(database, 'SELECT running, queued FROM account WHERE id = ?')
  return (accountId) => {
    const row = select.get(accountId)
    return row === undefined ? null : { running: row[0], queued: row[1] }
  }
}

type Counts = [queued: number, running: number, succeeded: number, canceled: number, failed: number, expired: number]

/** Counts every row once, so it costs as much as there are jobs. Returns how many counters were wrong. */
export function prepareRepairCounters(database: DatabaseSync): (input: null) => number {
  const selectCounters = prepareRows<[id: string, ...Counts]>(
    database,
    'SELECT id, queued, running, succeeded, canceled, failed, expired FROM account',
  )
  const countRows = prepareRows<Counts>(
    database,
    `SELECT coalesce(sum(status = 'queued'), 0), coalesce(sum(status IN ('running', 'canceling')), 0),
       coalesce(sum(status = 'succeeded'), 0), coalesce(sum(status = 'canceled'), 0), coalesce(sum(status = 'failed'), 0),
       coalesce(sum(status = 'expired'), 0) FROM job INDEXED BY job_listing WHERE account_id = ?`,
  )
  const correct = database.prepare(`
    UPDATE account SET queued = ?2, running = ?3, succeeded = ?4, canceled = ?5, failed = ?6, expired = ?7 WHERE id = ?1`)
  return () => {
    let wrong = 0
    for (const [id, ...counters] of selectCounters.all()) {
      const counted = countRows.get(id) ?? [0, 0, 0, 0, 0, 0]
      const differing = counters.filter((counter, index) => counter !== counted[index]).length
      if (differing > 0) correct.run(id, ...counted)
      wrong += differing
    }
    return wrong
  }
}

export function prepareCountByStatus(database: DatabaseSync): (input: null) => Record<JobStatus, number> {
  const sumCounters = prepareRows<Counts>(
    database,
    `SELECT coalesce(sum(queued), 0), coalesce(sum(running), 0), coalesce(sum(succeeded), 0), coalesce(sum(canceled), 0),
       coalesce(sum(failed), 0), coalesce(sum(expired), 0) FROM account`,
  )
  // Walks the held jobs only, of which there are never more than workers.
  const countCanceling = prepareRows<[number]>(
    database,
    `SELECT coalesce(sum(status = 'canceling'), 0) FROM job INDEXED BY job_lease WHERE status IN ('running', 'canceling')`,
  )
  return () => {
    const [queued, held, succeeded, canceled, failed, expired] = sumCounters.get() ?? [0, 0, 0, 0, 0, 0]
    const canceling = countCanceling.get()?.[0] ?? 0
    return { queued, running: held - canceling, succeeded, canceling, canceled, failed, expired }
  }
}
