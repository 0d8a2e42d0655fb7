/**
 * Submit: idempotency key, credit hold, queue bound, job row and counters in one transaction. Everything that decides is read under the
 * locks of the accounts; the submits are then decided one after the other as if each were alone, and what is accepted is written.
 * SQLite submits one job at a time, Postgres those of one turn of the event loop.
 */
import type { KeyClaim, KeyHolder } from '../../../../domain/idempotency/idempotency-key.ts'
import type { SubmitOutcome } from '../../../../domain/jobs/job-store.ts'
import { type NewJobRow, placeOf, toHold } from '../../rows/jobs/new-job.ts'
import { all, type Decided, decided, run, type Steps, sideBySide } from '../../statements/operation.ts'
import { both, command, postgresOnly, query } from '../../statements/statement.ts'
import { job as jobTable } from '../../tables/job-tables.ts'
import { pick, shape, uuid } from '../../tables/table.ts'
import { type ClaimedKey, findHolders } from '../idempotency-store.ts'
import { lockPurses, type Purses } from '../ledger/holds.ts'
import {
  accountOf,
  findClosedPools,
  type InsertJobs,
  type LockedAccount,
  lockAccounts,
  toClaims,
  writeJobs,
} from './new-jobs.ts'
import { findNewPositions, type PositionOf } from './new-positions.ts'
import { type Bounds, lockBounds } from './run-bounds.ts'

export interface Submit {
  readonly job: NewJobRow
  readonly claim: KeyClaim | null
}

export type SubmitAnswer =
  | { readonly outcome: 'queued'; readonly position: number }
  | Exclude<SubmitOutcome, { readonly outcome: 'queued' }>

// On a server the row of the id is taken first and given back when the submit is refused for another reason: of two callers who choose
// the same id at the same time, of whatever accounts, the second waits for the first.
const CHOOSE = query(
  'jobs.chooseIds',
  shape({ id: uuid() }),
  both({
    sqlite: 'SELECT value AS id FROM json_each(:ids) WHERE NOT EXISTS (SELECT 1 FROM job WHERE job.id = value)',
    postgres: `
      INSERT INTO job_id_chosen (id, expires_at)
      SELECT id, expires_at FROM unnest(:ids::uuid[], :expiries::bigint[]) AS chosen(id, expires_at)
      WHERE NOT EXISTS (SELECT 1 FROM job WHERE job.id = chosen.id)
        AND NOT EXISTS (SELECT 1 FROM job_done WHERE job_done.id = chosen.id)
      ORDER BY id ON CONFLICT (id) DO NOTHING RETURNING id`,
  }),
)
const GIVE_BACK = command('jobs.giveBackIds', postgresOnly('DELETE FROM job_id_chosen WHERE id = ANY(:ids::uuid[])'))

/** Which of the ids that callers chose are free, and now theirs. */
function* chooseIds(jobs: readonly NewJobRow[]): Steps<readonly string[]> {
  const chosen = jobs.filter(({ hasChosenId }) => hasChosenId === true)
  if (chosen.length === 0) return []
  const expiries = chosen.map(({ expiresAt }) => expiresAt.getTime())
  return (yield* all(CHOOSE, { ids: chosen.map(({ id }) => id), expiries })).map(({ id }) => id)
}

function* giveBackIds(ids: readonly string[]): Steps<void> {
  if (ids.length > 0) yield* run(GIVE_BACK, { ids })
}

const FIND_OURS = query(
  'jobs.findOurs',
  pick(jobTable, 'id', 'accountId', 'createdAt'),
  postgresOnly(`SELECT id, account_id, created_at FROM job WHERE id = ANY(:ids::uuid[])
    UNION ALL SELECT id, account_id, created_at FROM job_done WHERE id = ANY(:ids::uuid[])`),
)

function* findOurs(jobs: readonly NewJobRow[]): Steps<ReadonlySet<NewJobRow>> {
  if (jobs.length === 0) return new Set()
  const nameOf = ({ id, accountId, createdAt }: Pick<NewJobRow, 'id' | 'accountId' | 'createdAt'>) =>
    `${id} ${accountId} ${createdAt.getTime()}`
  const found = new Set((yield* all(FIND_OURS, { ids: jobs.map(({ id }) => id) })).map(nameOf))
  return new Set(jobs.filter((job) => found.has(nameOf(job))))
}

function* findKeyHolders(submits: readonly Submit[]): Steps<ReadonlyMap<Submit, KeyHolder | null>> {
  const keyed = submits.filter(({ claim }) => claim !== null)
  const holders = yield* findHolders(keyed.flatMap(({ job, claim }) => toClaims(job, claim, {})))
  return new Map(keyed.map((submit, index) => [submit, holders[index] ?? null]))
}

interface Known {
  readonly closedPools: ReadonlySet<string>
  readonly accounts: ReadonlyMap<string, LockedAccount>
  readonly holders: ReadonlyMap<Submit, KeyHolder | null>
  readonly chosen: readonly string[]
  readonly ours: ReadonlySet<NewJobRow>
  readonly positionOf: PositionOf
  readonly purses: Purses
  readonly bounds: Bounds
}

/** The locks come first: each statement behind them sees what was committed before it. */
function* readKnown(submits: readonly Submit[], isAgain: boolean): Steps<Known> {
  const jobs = submits.map(({ job }) => job)
  const [closedPools, accounts, holders, chosen, ours, positionOf, purses, bounds] = yield* sideBySide(
    findClosedPools(jobs),
    lockAccounts(jobs),
    findKeyHolders(submits),
    chooseIds(jobs),
    findOurs(isAgain ? jobs : []),
    findNewPositions(jobs.map((job) => ({ ...job, priority: placeOf(job) }))),
    lockPurses(jobs.map(toHold).filter((hold) => hold !== null)),
    lockBounds(jobs),
  )
  return { closedPools, accounts, holders, chosen, ours, positionOf, purses, bounds }
}

/**
 * One answer for each, in their order. `isAgain`: after a commit whose answer was lost, so that jobs of these submits may be there.
 */
export function* submitJobs(
  submits: readonly Submit[],
  insertJobs: InsertJobs,
  isAgain = false,
): Steps<Decided<readonly SubmitAnswer[]>> {
  const known = yield* readKnown(submits, isAgain)
  const { answers, jobs, claims } = decide(submits, known)
  const used = new Set(jobs.map(({ id }) => id))
  const unused = known.chosen.filter((id) => !used.has(id))
  return decided(answers, () =>
    sideBySide(
      writeJobs(insertJobs, { jobs, claims, purses: known.purses }),
      giveBackIds(unused),
      known.bounds.write(),
    ),
  )
}

interface Decision {
  readonly answers: readonly SubmitAnswer[]
  readonly jobs: readonly NewJobRow[]
  readonly claims: readonly ClaimedKey[]
}

function decide(submits: readonly Submit[], known: Known): Decision {
  const waiting = new Map([...known.accounts].map(([id, account]) => [id, account.waiting]))
  const chosen = new Set(known.chosen)
  const accepted = new Map<string, NewJobRow>()
  const claims = new Map<string, ClaimedKey>()

  function findHolder(submit: Submit): KeyHolder | null {
    const { job, claim } = submit
    if (claim === null) return null
    const claimed = claims.get(`${job.accountId} ${claim.key}`)
    // Claimed a moment ago, by a submit before it.
    if (claimed !== undefined && claimed.expiresAt > claim.claimedAt)
      return { jobId: claimed.jobId ?? null, assetId: null }
    return known.holders.get(submit) ?? null
  }

  function refuse(submit: Submit): SubmitAnswer | null {
    const { job } = submit
    if (accepted.has(job.id) || (job.hasChosenId === true && !chosen.has(job.id))) return { outcome: 'id_taken' }
    const holder = findHolder(submit)
    if (holder !== null) return { outcome: 'key_reused', holder }
    if (known.closedPools.has(job.pool)) return { outcome: 'pool_closed' }
    const excess = known.bounds.findExcess(job)
    if (excess !== null) return { outcome: 'out_of_bounds', excess }
    const hold = toHold(job)
    if (hold !== null && !known.purses.canHold(hold)) {
      const budget = known.purses.excessOf(hold)
      return { outcome: 'insufficient_credits', ...(budget !== null && { budget }) }
    }
    const isFull = (waiting.get(job.accountId) ?? 0) >= accountOf(known.accounts, job).maxQueued
    return isFull ? { outcome: 'queue_full' } : null
  }

  function accept({ job, claim }: Submit): SubmitAnswer {
    const { id, accountId } = job
    const hold = toHold(job)
    if (hold !== null) known.purses.hold(hold)
    known.bounds.take(job)
    for (const claimed of toClaims(job, claim, { jobId: id })) claims.set(`${accountId} ${claimed.key}`, claimed)
    const nowWaiting = (waiting.get(accountId) ?? 0) + 1
    waiting.set(accountId, nowWaiting)
    accepted.set(id, job)
    return { outcome: 'queued', position: known.positionOf({ ...job, priority: placeOf(job) }, nowWaiting) }
  }

  const answers = submits.map((submit): SubmitAnswer => {
    const { job } = submit
    if (!known.ours.has(job)) return refuse(submit) ?? accept(submit)
    return { outcome: 'queued', position: Math.max(1, waiting.get(job.accountId) ?? 0) }
  })
  return { answers, jobs: [...accepted.values()], claims: [...claims.values()] }
}
