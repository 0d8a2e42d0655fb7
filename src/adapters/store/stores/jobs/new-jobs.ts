/** What every way to create jobs reads, locks and writes: single submits, batches, and jobs that an earlier result answers. */
import type { KeyClaim } from '../../../../domain/idempotency/idempotency-key.ts'
import type { NewJobRow } from '../../rows/jobs/new-job.ts'
import { all, run, type Steps, sideBySide, together } from '../../statements/operation.ts'
import { command, postgresOnly, query, toRows } from '../../statements/statement.ts'
import { integer, shape, text } from '../../tables/table.ts'
import { type ClaimedKey, claimKeys } from '../idempotency-store.ts'
import type { Purses } from '../ledger/holds.ts'
import { keepHooks } from '../webhooks/keep-hook.ts'

/** Writes the rows of jobs in the order of the queue and counts them for their accounts, which are locked. Each store has its own. */
export type InsertJobs = (jobs: readonly NewJobRow[]) => Steps<void>

const LOCK_POOLS = query(
  'deployments.lockPools',
  shape({ id: text() }),
  (words) => `
    SELECT id FROM (
      SELECT id, state FROM deployment WHERE ${words.isIn('id', ':pools')} ORDER BY id ${words.lock('KEY SHARE')}) AS locked
    WHERE state <> 'ready'`,
)

/**
 * Which of these pools take no jobs now because their deployment is not ready. The others stay open until the transaction ends.
 * To be asked before any other lock is taken.
 */
export function* findClosedPools(jobs: readonly NewJobRow[]): Steps<ReadonlySet<string>> {
  // Most jobs go to the common pool, which belongs to no deployment: they cost no statement.
  const pools = [...new Set(jobs.map(({ pool }) => pool))].filter((pool) => pool !== 'default')
  if (pools.length === 0) return new Set()
  return new Set((yield* all(LOCK_POOLS, { pools })).map(({ id }) => id))
}

const LOCK_ACCOUNTS = query(
  'accounts.lock',
  shape({ id: text(), maxQueued: integer(), entered: integer() }),
  (words) => `
    SELECT id, max_queued, ${words.either('queued', 'submitted')} AS entered FROM account
    WHERE ${words.either('id = :accountId', 'id = ANY(:accountIds) ORDER BY id FOR NO KEY UPDATE')}`,
)
// Read without a lock: a claim under way may not be counted yet. SQLite counts those that wait.
const STARTED = query(
  'accounts.started',
  shape({ accountId: text(), started: integer() }),
  postgresOnly('SELECT account_id, started FROM account_load WHERE account_id = ANY(:accountIds)'),
)

export interface LockedAccount {
  readonly maxQueued: number
  /** How many of its jobs are in its queue. */
  readonly waiting: number
}

/**
 * Until the transaction ends nobody else submits for these accounts or claims one of their keys. What is decided under the lock is
 * read by later statements: they see whatever was committed by those who held it before. On SQLite all are of one account.
 */
export function* lockAccounts(jobs: readonly NewJobRow[]): Steps<ReadonlyMap<string, LockedAccount>> {
  const accountIds = [...new Set(jobs.map(({ accountId }) => accountId))]
  const locking = { accountIds, accountId: accountIds[0] ?? '' }
  const [locked, counted] = yield* together(all(LOCK_ACCOUNTS, locking), all(STARTED, { accountIds }))
  const started = new Map(counted.map(({ accountId, started }) => [accountId, started]))
  return new Map(
    locked.map(({ id, maxQueued, entered }) => [id, { maxQueued, waiting: entered - (started.get(id) ?? 0) }]),
  )
}

/** The one account of these jobs. */
export function accountOf(accounts: ReadonlyMap<string, LockedAccount>, { accountId }: NewJobRow): LockedAccount {
  const account = accounts.get(accountId)
  if (account === undefined) throw new Error(`No account ${accountId}.`)
  return account
}

/** The key that comes with a job and stands for it, or for its batch. */
export function toClaims(
  { accountId }: NewJobRow,
  claim: KeyClaim | null,
  holder: Pick<ClaimedKey, 'jobId' | 'batchId'>,
): readonly ClaimedKey[] {
  if (claim === null) return []
  const { key, claimedAt, expiresAt } = claim
  return [{ accountId, key, now: claimedAt, expiresAt, ...holder }]
}

// Only rows that are new or near their end: a row that somebody else has just written is not even locked.
const RECIPES = { account_id: 'text', recipe: 'text', terms: 'text', expires_at: 'bigint' } as const
const KEEP_RECIPES = command(
  'jobs.keepRecipes',
  (words) => `
    INSERT INTO job_recipe AS known (account_id, recipe, title, terms, expires_at)
    SELECT account_id, recipe, '', min(terms), max(expires_at) FROM ${words.rows(':recipes', RECIPES)} AS new
    WHERE NOT EXISTS (
      SELECT 1 FROM job_recipe WHERE job_recipe.account_id = new.account_id AND job_recipe.recipe = new.recipe
        AND job_recipe.expires_at >= new.expires_at)
    GROUP BY account_id, recipe ORDER BY account_id, recipe
    ON CONFLICT (account_id, recipe) DO UPDATE SET expires_at = ${words.greatest('known.expires_at', 'excluded.expires_at')}`,
)

function* keepRecipes(jobs: readonly NewJobRow[]): Steps<void> {
  const rows = jobs.flatMap(({ accountId, recipe }) =>
    recipe === null || recipe.terms === null
      ? []
      : [{ account_id: accountId, recipe: recipe.key, terms: recipe.terms, expires_at: recipe.expiresAt }],
  )
  if (rows.length > 0) yield* run(KEEP_RECIPES, toRows('recipes', rows))
}

interface Accepted {
  readonly jobs: readonly NewJobRow[]
  readonly claims: readonly ClaimedKey[]
  readonly purses: Purses
}

export function* writeJobs(insertJobs: InsertJobs, { jobs, claims, purses }: Accepted): Steps<void> {
  const hooks = jobs.flatMap(({ accountId, hook, createdAt }) =>
    hook == null ? [] : [{ accountId, hook, at: createdAt }],
  )
  yield* sideBySide(
    // First: the endpoints that jobs bring must exist before the messages that the jobs are queued.
    keepHooks(hooks),
    insertJobs(jobs),
    keepRecipes(jobs),
    claimKeys(claims),
    purses.write(),
  )
}
