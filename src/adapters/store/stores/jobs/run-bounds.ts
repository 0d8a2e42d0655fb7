/**
 * Bounds of scopes, for use inside the transaction that records jobs. Whoever records jobs of an account holds its lock, so what is read
 * here changes no more until the commit. A job that was counted has a ticket until somebody finds that it has ended: nothing at the end
 * of a job knows of bounds.
 */
import type { Micros } from '../../../../../lib/text/usd.ts'
import {
  addRun,
  correctRun,
  countedAt,
  findExcess,
  NO_TALLIES,
  type RunExcess,
  type RunLimitStore,
  type Tallies,
} from '../../../../domain/jobs/limits/run-limits.ts'
import type { NewJobRow } from '../../rows/jobs/new-job.ts'
import { all, defineStore, durable, read, run, type Steps, together } from '../../statements/operation.ts'
import { command, postgresOnly, query, toRows, type Words } from '../../statements/statement.ts'
import { runScope, runTicket } from '../../tables/job-tables.ts'
import { integer, type RowOf, shape } from '../../tables/table.ts'

const SCOPES = { account_id: 'text', scope: 'text' } as const
const ofAsked = (words: Words, table: string) =>
  `${words.rows(':asked', SCOPES)} AS asked JOIN ${table} ON ${table}.account_id = asked.account_id AND ${table}.scope = asked.scope`
const isLive = ({ either }: Words) =>
  `EXISTS (SELECT 1 FROM job WHERE job.id = run_ticket.job_id${either(` AND job.status IN ('queued', 'running', 'canceling')`, '')})`

const FIND = query(
  'runBounds.find',
  runScope,
  (words) => `SELECT run_scope.account_id, run_scope.scope, tallies, open, look_at FROM ${ofAsked(words, 'run_scope')}`,
)
// Its end and its charge were written together.
const FIND_ENDED = query(
  'runBounds.findEnded',
  shape({ ...runTicket.fields, charged: integer() }),
  (words) => `
    SELECT run_ticket.account_id, run_ticket.scope, run_ticket.job_id, counted_at, micros, is_withdrawn, coalesce((
      SELECT sum(charged) FROM ledger_entry
      WHERE reference = 'job:' || run_ticket.job_id AND kind IN ('settle', 'refund')), 0) AS charged
    FROM ${ofAsked(words, 'run_ticket')} WHERE NOT ${isLive(words)}`,
)
const CLOSE = command(
  'runBounds.close',
  (words) => `
    DELETE FROM run_ticket WHERE (account_id, scope, job_id) IN
      (SELECT account_id, scope, job_id FROM ${words.rows(':tickets', { ...SCOPES, job_id: 'uuid' })} AS ended)`,
)
const OPEN = command(
  'runBounds.open',
  (words) => `
    INSERT INTO run_ticket (account_id, scope, job_id, counted_at, micros)
    SELECT account_id, scope, job_id, counted_at, micros
    FROM ${words.rows(':tickets', { ...SCOPES, job_id: 'uuid', counted_at: 'bigint', micros: 'bigint' })} AS opened`,
)
const PUT = command(
  'runBounds.put',
  (words) => `
    INSERT INTO run_scope (account_id, scope, tallies, open, look_at)
    SELECT account_id, scope, tallies, open, look_at
    FROM ${words.rows(':scopes', { ...SCOPES, tallies: 'text', open: 'integer', look_at: 'integer' })} AS counted WHERE true
    ON CONFLICT (account_id, scope) DO UPDATE
      SET tallies = excluded.tallies, open = excluded.open, look_at = excluded.look_at`,
)

type Ended = RowOf<typeof runTicket> & { readonly charged: Micros }

interface CountedScope {
  readonly accountId: string
  readonly scope: string
  /** With those that have ended and were not looked for. */
  inFlight: number
  lookAt: number
  tallies: Tallies
}

// So few tickets cost nothing to look through.
const FIRST_LOOK = 64

/** What was counted for the bounds of some jobs, until the transaction ends. What is taken is written by `write`, once. */
export interface Bounds {
  /** Why the job does not fit now; null: it does. */
  findExcess(job: NewJobRow): RunExcess | null
  take(job: NewJobRow): void
  /** A job that needs no place, because it has ended already. */
  takeEnded(job: NewJobRow): void
  write(): Steps<void>
}

const nameOf = (accountId: string, scope: string) => `${accountId} ${scope}`

function listScopes(jobs: readonly NewJobRow[]) {
  const named = jobs.flatMap(({ accountId, within = [] }) =>
    within.map(({ scope }) => [nameOf(accountId, scope), { accountId, scope }] as const),
  )
  return [...new Map(named).values()]
}

function isIn({ accountId, within = [] }: NewJobRow, asked: { readonly accountId: string; readonly scope: string }) {
  return accountId === asked.accountId && within.some(({ scope }) => scope === asked.scope)
}

const toAsked = (scopes: readonly { readonly accountId: string; readonly scope: string }[]) =>
  toRows(
    'asked',
    scopes.map(({ accountId, scope }) => ({ account_id: accountId, scope })),
  )

/** To be asked under the locks of the jobs' accounts. Jobs without bounds cost no statement. */
export function* lockBounds(jobs: readonly NewJobRow[]): Steps<Bounds> {
  const asked = listScopes(jobs).map((each): AskedScope => {
    const own = jobs.filter((job) => isIn(job, each))
    return { ...each, mustLook: (known) => mustLook(known, own, each.scope) }
  })
  const { scopes, ended } =
    asked.length === 0 ? { scopes: new Map<string, CountedScope>(), ended: [] } : yield* readScopes(asked)
  const opened: Pick<RowOf<typeof runTicket>, 'accountId' | 'scope' | 'jobId' | 'countedAt' | 'micros'>[] = []

  const scopeOf = (accountId: string, scope: string): CountedScope => {
    const found = scopes.get(nameOf(accountId, scope))
    if (found === undefined) throw new Error(`The scope ${scope} was not asked for.`)
    return found
  }

  return {
    findExcess(job) {
      for (const bound of job.within ?? []) {
        const use = scopeOf(job.accountId, bound.scope)
        const excess = findExcess(bound, use, { at: job.createdAt, micros: job.price?.holdMicros ?? 0 })
        if (excess !== null) return excess
      }
      return null
    },
    take({ id: jobId, accountId, within = [], createdAt, price }) {
      const micros = price?.holdMicros ?? 0
      for (const { scope } of within) {
        const counted = scopeOf(accountId, scope)
        const at = countedAt(counted.tallies, createdAt)
        counted.inFlight += 1
        counted.tallies = addRun(counted.tallies, at, micros)
        opened.push({ accountId, scope, jobId, countedAt: at, micros })
      }
    },
    takeEnded({ accountId, within = [], createdAt }) {
      for (const { scope } of within) {
        const counted = scopeOf(accountId, scope)
        counted.tallies = addRun(counted.tallies, countedAt(counted.tallies, createdAt), 0)
      }
    },
    *write() {
      if (scopes.size === 0) return
      yield* together(
        run(
          PUT,
          toRows(
            'scopes',
            [...scopes.values()].map(({ accountId, scope, tallies, inFlight, lookAt }) => ({
              ...{ account_id: accountId, scope, tallies: JSON.stringify(tallies), open: inFlight, look_at: lookAt },
            })),
          ),
        ),
        ...(ended.length > 0 ? [run(CLOSE, toTickets(ended))] : []),
        ...(opened.length > 0 ? [run(OPEN, toTickets(opened))] : []),
      )
    },
  }
}

function toTickets(
  tickets: readonly Pick<RowOf<typeof runTicket>, 'accountId' | 'scope' | 'jobId' | 'countedAt' | 'micros'>[],
) {
  return toRows(
    'tickets',
    tickets.map(({ accountId, scope, jobId, countedAt, micros }) => ({
      ...{ account_id: accountId, scope, job_id: jobId, counted_at: countedAt, micros },
    })),
  )
}

interface AskedScope {
  readonly accountId: string
  readonly scope: string
  /** Whether what is known of it, with tickets of jobs that may have ended, is not enough to decide. */
  mustLook(known: CountedScope): boolean
}

/** Which tickets belong to jobs that have ended is looked up where it matters, and else once their number has doubled. */
function* readScopes(asked: readonly AskedScope[]) {
  const scopes = new Map(
    asked.map(({ accountId, scope }): [string, CountedScope] => [
      nameOf(accountId, scope),
      { accountId, scope, inFlight: 0, lookAt: FIRST_LOOK, tallies: NO_TALLIES },
    ]),
  )
  const of = ({ accountId, scope }: { readonly accountId: string; readonly scope: string }) =>
    scopes.get(nameOf(accountId, scope)) as CountedScope
  for (const row of yield* all(FIND, toAsked(asked)))
    Object.assign(of(row), { tallies: row.tallies, inFlight: row.open, lookAt: row.lookAt })
  const looked = asked.filter((each) => of(each).inFlight > 0 && each.mustLook(of(each)))
  const ended: readonly Ended[] = looked.length === 0 ? [] : yield* all(FIND_ENDED, toAsked(looked))
  for (const ticket of ended) {
    const scope = of(ticket)
    const change = ticket.isWithdrawn
      ? { runs: -1, micros: -ticket.micros }
      : { runs: 0, micros: ticket.charged - ticket.micros }
    scope.tallies = correctRun(scope.tallies, ticket.countedAt, change)
    scope.inFlight -= 1
  }
  for (const each of looked) of(each).lookAt = Math.max(FIRST_LOOK, 2 * of(each).inFlight)
  return { scopes, ended }
}

/** A run may have cost more than was set aside for it, so a budget is judged only by what is known of all that have ended. */
function mustLook({ inFlight, lookAt, tallies }: CountedScope, jobs: readonly NewJobRow[], scope: string): boolean {
  if (inFlight >= lookAt) return true
  return jobs.some((job) =>
    (job.within ?? []).some((bound) => {
      if (bound.scope !== scope) return false
      if (Object.keys(bound.limits.spend).length > 0) return true
      // As if all others of the request came before it.
      const use = { inFlight: inFlight + jobs.length - 1, tallies: withRuns(tallies, jobs.length - 1) }
      return findExcess(bound, use, { at: job.createdAt, micros: 0 }) !== null
    }),
  )
}

function withRuns(tallies: Tallies, runs: number): Tallies {
  const more = Object.entries(tallies).map(([period, tally]) => [period, { ...tally, runs: tally.runs + runs }])
  return Object.fromEntries(more) as Tallies
}

const WITHDRAW = command('runBounds.withdraw', 'UPDATE run_ticket SET is_withdrawn = 1 WHERE job_id = :jobId')

/** The job is taken back: it counts for nothing. */
export function* withdrawTickets(jobId: string): Steps<void> {
  yield* run(WITHDRAW, { jobId })
}

// No job of the account is recorded meanwhile.
const LOCK_ACCOUNT = command(
  'runBounds.lockAccount',
  postgresOnly('SELECT 1 FROM account WHERE id = :accountId FOR NO KEY UPDATE'),
)
const OF_SCOPE = 'WHERE account_id = :accountId AND scope = :scope'
const FORGET = command('runBounds.forget', `DELETE FROM run_scope ${OF_SCOPE}`)
const FORGET_TICKETS = command('runBounds.forgetTickets', `DELETE FROM run_ticket ${OF_SCOPE}`)

export const runLimitStore = defineStore<RunLimitStore>('runLimits', {
  findUse: read(function* (accountId, scopes) {
    if (scopes.length === 0) return new Map()
    const found = yield* readScopes(scopes.map((scope) => ({ accountId, scope, mustLook: () => true })))
    const counted = [...found.scopes.values()].filter(({ tallies }) => tallies.ever.runs > 0)
    return new Map(counted.map(({ scope, inFlight, tallies }) => [scope, { inFlight, tallies }]))
  }),
  forget: durable(function* (accountId, scope) {
    const of = { accountId, scope }
    yield* together(run(LOCK_ACCOUNT, { accountId }), run(FORGET, of), run(FORGET_TICKETS, of))
  }),
})
