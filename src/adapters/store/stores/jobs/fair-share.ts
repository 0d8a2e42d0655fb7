/**
 * What accounts have used of the time of a pool's engines, in milliseconds, each account's by its share. A claim adds what the run is
 * foreseen to take (claim-job.ts of either store); here that becomes what it took. The row without an account has the floor: as much
 * as every account has used at least that waited while others were served, so that nobody who comes back is owed more than they are.
 */
import { run, type Steps } from '../../statements/operation.ts'
import { both, command, toRows } from '../../statements/statement.ts'

/** The account of the row with the floor. */
export const FLOOR = ''
/** Of a run of which nothing is foreseen. */
export const UNKNOWN_RUN_MS = 1000

/** A run that is over, with what was foreseen of it when it was claimed. */
interface ChargedRun {
  readonly accountId: string
  readonly pool: string
  /** null: its claim charged nothing. */
  readonly foreseenMs: number | null
  readonly startedAt: Date | null
  readonly endedAt: Date
  /** It gave way: whoever else waits comes first. */
  readonly isBehind?: boolean
}

const CHANGES = { pool: 'text', account_id: 'text', ms: 'bigint' } as const
const CORRECT = command('shares.correct', (words) =>
  words.either(
    `UPDATE fair_share SET used_ms = max(0, used_ms + change.ms * 100 / account.share_percent), changed_at = :at
     FROM ${words.rows(':changes', CHANGES)} AS change CROSS JOIN account ON account.id = change.account_id
     WHERE fair_share.pool = change.pool AND fair_share.account_id = change.account_id`,
    `UPDATE fair_share SET used_ms = greatest(0, used_ms + change.ms * 100 / load.share_percent), changed_at = :at
     FROM ${words.rows(':changes', CHANGES)} AS change JOIN account_load AS load ON load.account_id = change.account_id
     WHERE fair_share.pool = change.pool AND fair_share.account_id = change.account_id`,
  ),
)
const PUT_BEHIND = command(
  'shares.putBehind',
  `UPDATE fair_share SET used_ms = 1 + (SELECT max(used_ms) FROM fair_share AS other WHERE other.pool = :pool)
   WHERE pool = :pool AND account_id = :accountId`,
)

/** The caller has the counters of the accounts locked, so their rows here are nobody else's meanwhile. */
export function* chargeWhatRan(runs: readonly ChargedRun[]): Steps<void> {
  const charged = runs.filter(({ foreseenMs, startedAt }) => foreseenMs !== null && startedAt !== null)
  if (charged.length === 0) return
  const byShare = Map.groupBy(charged, ({ pool, accountId }) => JSON.stringify([pool, accountId]))
  const changes = [...byShare.values()].map((ofOne) => ({
    pool: ofOne[0]?.pool ?? '',
    account_id: ofOne[0]?.accountId ?? '',
    ms: Math.round(ofOne.reduce((sum, each) => sum + tookMs(each) - (each.foreseenMs ?? 0), 0)),
  }))
  const at = new Date(Math.max(...charged.map(({ endedAt }) => endedAt.getTime())))
  yield* run(CORRECT, { ...toRows('changes', changes), at })
  for (const { pool, accountId } of charged.filter(({ isBehind }) => isBehind))
    yield* run(PUT_BEHIND, { pool, accountId })
}

function tookMs({ startedAt, endedAt }: ChargedRun): number {
  return Math.max(0, endedAt.getTime() - (startedAt ?? endedAt).getTime())
}

const SWEEP = command(
  'shares.sweep',
  both({
    sqlite: `DELETE FROM fair_share WHERE (pool, account_id) IN (
      SELECT pool, account_id FROM fair_share WHERE changed_at < :before LIMIT :limit)`,
    postgres: `DELETE FROM fair_share WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM fair_share WHERE changed_at < :before LIMIT :limit FOR UPDATE SKIP LOCKED))`,
  }),
)

/** What was used so long ago is forgiven; returns how many rows went. */
export function* sweepShares(before: Date, limit: number): Steps<number> {
  return yield* run(SWEEP, { before, limit })
}
