/** Accounts and their counters, which must always equal the rows that they count. */
import type { AccountStore } from '../../../domain/accounts/account-store.ts'
import type { JobStatus } from '../../../domain/jobs/transitions.ts'
import {
  all,
  chore,
  defineStore,
  durable,
  get,
  type OpenStore,
  read,
  report,
  run,
  type Steps,
  together,
} from '../statements/operation.ts'
import { both, command, postgresOnly, query } from '../statements/statement.ts'
import { integer, type RowOf, shape, text } from '../tables/table.ts'

const PUT = command('accounts.put', ({ either }) =>
  either(
    `INSERT INTO account (id, max_running, max_queued, share_percent) VALUES (:id, :maxRunning, :maxQueued, :sharePercent)
     ON CONFLICT (id) DO UPDATE SET max_running = excluded.max_running, max_queued = excluded.max_queued,
       share_percent = excluded.share_percent`,
    `INSERT INTO account (id, max_queued) VALUES (:id, :maxQueued)
     ON CONFLICT (id) DO UPDATE SET max_queued = excluded.max_queued`,
  ),
)
const PUT_LOAD = command(
  'accounts.putLoad',
  postgresOnly(`INSERT INTO account_load (account_id, max_running, share_percent) VALUES (:id, :maxRunning, :sharePercent)
    ON CONFLICT (account_id) DO UPDATE SET max_running = excluded.max_running, share_percent = excluded.share_percent`),
)
const FIND_USE = query('accounts.findUse', shape({ running: integer(), queued: integer() }), ({ either }) =>
  either(
    'SELECT running, queued FROM account WHERE id = :accountId',
    `SELECT running, submitted - started AS queued FROM account JOIN account_load ON account_id = id WHERE id = :accountId`,
  ),
)

const COUNTERS = ['queued', 'running', 'succeeded', 'canceled', 'failed', 'expired'] as const
type Counters = Readonly<Record<(typeof COUNTERS)[number], number>>

const counters = {
  queued: integer(),
  running: integer(),
  succeeded: integer(),
  canceled: integer(),
  failed: integer(),
  expired: integer(),
}
const compared = shape({
  id: text(),
  ...counters,
  ...{ queuedRows: integer(), runningRows: integer(), succeededRows: integer() },
  ...{ canceledRows: integer(), failedRows: integer(), expiredRows: integer() },
})

// One statement, and so one snapshot: every transaction changes rows and counters together, so a difference is never a moment's.
const SQLITE_COMPARE = `
  SELECT id, queued, running, succeeded, canceled, failed, expired, ${COUNTERS.map(
    (counter) => `(SELECT count(*) FROM job INDEXED BY job_listing WHERE job.account_id = account.id AND status
      ${counter === 'running' ? `IN ('running', 'canceling')` : `= '${counter}'`}) AS ${counter}_rows`,
  )} FROM account`
const POSTGRES_COMPARE = `
  SELECT account.id, account.submitted - load.started AS queued, load.running, load.succeeded, load.canceled, load.failed, load.expired,
    live.queued_rows, live.running_rows, done.succeeded_rows, done.canceled_rows, done.failed_rows, done.expired_rows
  FROM account JOIN account_load AS load ON load.account_id = account.id
  CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE status = 'queued') AS queued_rows, count(*) FILTER (WHERE status <> 'queued') AS running_rows
    FROM job WHERE job.account_id = account.id) AS live
  CROSS JOIN LATERAL (
    SELECT ${['succeeded', 'canceled', 'failed', 'expired'].map((status) => `count(*) FILTER (WHERE status = '${status}') AS ${status}_rows`)}
    FROM job_done WHERE job_done.account_id = account.id) AS done`
const compare = (rest: string) => both({ sqlite: `${SQLITE_COMPARE} ${rest}`, postgres: `${POSTGRES_COMPARE} ${rest}` })

const COMPARED_AT_ONCE = 100
const COMPARE_SOME = query(
  'accounts.compare_some',
  compared,
  compare(
    `WHERE account.id IN (SELECT id FROM account WHERE id > :after ORDER BY id LIMIT ${COMPARED_AT_ONCE}) ORDER BY account.id`,
  ),
)
const COMPARE_ONE = query('accounts.compare_one', compared, compare('WHERE account.id = :id'))
const LOCK = command('accounts.lockOne', postgresOnly('SELECT 1 FROM account WHERE id = :id FOR NO KEY UPDATE'))
const LOCK_LOAD = command(
  'accounts.lockLoad',
  postgresOnly('SELECT 1 FROM account_load WHERE account_id = :id FOR NO KEY UPDATE'),
)
const CORRECT = command('accounts.correct', ({ either }) =>
  either(
    `UPDATE account SET queued = :queued, running = :running, succeeded = :succeeded, canceled = :canceled, failed = :failed,
       expired = :expired WHERE id = :id`,
    'UPDATE account SET submitted = :queued + (SELECT started FROM account_load WHERE account_id = :id) WHERE id = :id',
  ),
)
const CORRECT_LOAD = command(
  'accounts.correctLoad',
  postgresOnly(`UPDATE account_load SET running = :running, succeeded = :succeeded, canceled = :canceled, failed = :failed,
    expired = :expired WHERE account_id = :id`),
)

type Compared = RowOf<typeof compared>

function countWrong(row: Compared): number {
  return COUNTERS.filter((counter) => row[counter] !== row[`${counter}Rows`]).length
}

function* repair(id: string): Steps<number> {
  const [, , row] = yield* together(run(LOCK, { id }), run(LOCK_LOAD, { id }), get(COMPARE_ONE, { id }))
  if (row === undefined || countWrong(row) === 0) return 0
  const counted = Object.fromEntries(COUNTERS.map((counter) => [counter, row[`${counter}Rows`]]))
  yield* together(run(CORRECT, { id, ...counted }), run(CORRECT_LOAD, { id, ...counted }))
  return countWrong(row)
}

/** Every counter of every account, in one transaction: for whoever has the database to itself. */
export function* repairAllCounters(): Steps<number> {
  let wrong = 0
  for (let after: string | undefined = ''; after !== undefined; ) {
    const rows: Compared[] = yield* all(COMPARE_SOME, { after })
    for (const row of rows) if (countWrong(row) > 0) wrong += yield* repair(row.id)
    after = rows.length < COMPARED_AT_ONCE ? undefined : rows.at(-1)?.id
  }
  return wrong
}

const counted = shape({ ...counters, canceling: integer() })
const sums = (columns: Readonly<Record<keyof Counters, string>>) =>
  Object.entries(columns).map(([counter, column]) => `coalesce(sum(${column}), 0) AS ${counter}`)
const OWN = {
  queued: 'queued',
  running: 'running',
  succeeded: 'succeeded',
  canceled: 'canceled',
  failed: 'failed',
  expired: 'expired',
}
// Of held jobs there are never more than workers: those that are being canceled are counted one by one.
const COUNT = query(
  'accounts.sum',
  counted,
  both({
    sqlite: `SELECT ${sums(OWN)}, (
      SELECT count(*) FROM job INDEXED BY job_lease WHERE status IN ('running', 'canceling') AND status = 'canceling') AS canceling FROM account`,
    postgres: `SELECT ${sums({ ...OWN, queued: 'submitted - started' })}, (
      SELECT count(*) FROM job WHERE status IN ('running', 'canceling') AND status = 'canceling') AS canceling
      FROM account JOIN account_load ON account_id = id`,
  }),
)

export function* countByStatus(): Steps<Record<JobStatus, number>> {
  const none = { queued: 0, running: 0, succeeded: 0, canceled: 0, failed: 0, expired: 0, canceling: 0 }
  const { running: held, ...others } = (yield* get(COUNT)) ?? none
  return { ...others, running: held - others.canceling }
}

interface AccountSteps extends Pick<AccountStore, 'put' | 'findUse'> {
  countByStatus(): Promise<Record<JobStatus, number>>
  /** The next accounts behind this id: how many counters of each are wrong. */
  compareSome(after: string): Promise<readonly { readonly id: string; readonly wrong: number }[]>
  /** Counts the rows of an account again, under its locks; returns how many of its counters were wrong. */
  repair(id: string): Promise<number>
}

export const accountSteps = defineStore<AccountSteps>('accounts', {
  put: durable(
    function* ({ id, maxRunning, maxQueued, sharePercent = 100 }) {
      const limits = { maxRunning, sharePercent }
      yield* together(run(PUT, { id, maxQueued, ...limits }), run(PUT_LOAD, { id, ...limits }))
    },
    { isRepeatable: true },
  ),
  findUse: read(function* (accountId) {
    return (yield* get(FIND_USE, { accountId })) ?? null
  }),
  countByStatus: read(countByStatus),
  compareSome: report(function* (after) {
    return (yield* all(COMPARE_SOME, { after })).map((row) => ({ id: row.id, wrong: countWrong(row) }))
  }),
  repair: chore(repair),
})

export function createAccountStore(open: OpenStore): AccountStore {
  const { put, findUse, compareSome, repair } = open(accountSteps)
  return {
    put,
    findUse,
    // Counts every row once, so it costs as much as there are jobs. Only an account whose counters are wrong is locked.
    async repairCounters() {
      let repaired = 0
      for (let after: string | undefined = ''; after !== undefined; ) {
        const some = await compareSome(after)
        for (const { id, wrong } of some) if (wrong > 0) repaired += await repair(id)
        after = some.length < COMPARED_AT_ONCE ? undefined : some.at(-1)?.id
      }
      return repaired
    },
  }
}
