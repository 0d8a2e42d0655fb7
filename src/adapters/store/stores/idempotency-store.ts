/** Idempotency keys: one namespace per account, single use until they expire. They are claimed with whatever they stand for. */
import type { IdempotencyStore, KeyHolder } from '../../../domain/idempotency/idempotency-key.ts'
import { all, chore, defineStore, type OpenStore, read, run, type Steps } from '../statements/operation.ts'
import { both, command, query, toRows } from '../statements/statement.ts'
import { idempotencyKey } from '../tables/accounts.ts'
import { integer, pick, shape } from '../tables/table.ts'

interface AskedKey {
  readonly accountId: string
  readonly key: string
  readonly now: Date
}

const FIND = query(
  'keys.findHolders',
  shape({ place: integer(), ...pick(idempotencyKey, 'jobId', 'assetId', 'batchId').fields }),
  (words) => `
    SELECT place, job_id, asset_id, batch_id
    FROM ${words.rows(':asked', { place: 'integer', account_id: 'text', key: 'text', now: 'bigint' })} AS asked
    JOIN idempotency_key AS known
      ON known.account_id = asked.account_id AND known.key = asked.key AND known.expires_at > asked.now`,
)

/** What holds each of the keys, or null where one is free. */
export function* findHolders(asked: readonly AskedKey[]): Steps<(KeyHolder | null)[]> {
  const holders = asked.map((): KeyHolder | null => null)
  if (asked.length === 0) return holders
  const rows = asked.map(({ accountId, key, now }, place) => ({ place, account_id: accountId, key, now }))
  for (const { place, batchId, ...holder } of yield* all(FIND, toRows('asked', rows))) {
    holders[place] = batchId === null ? holder : { ...holder, batchId }
  }
  return holders
}

export interface ClaimedKey extends AskedKey {
  readonly expiresAt: Date
  readonly jobId?: string
  readonly assetId?: string
  readonly batchId?: string
}

// The guard repeats what `findHolders` has decided: a claim never replaces a live one, whatever the caller overlooked. A key may
// not end at null, so the whole transaction fails.
const CLAIM = command(
  'keys.claim',
  (words) => `
    INSERT INTO idempotency_key AS known (account_id, key, expires_at, job_id, asset_id, batch_id)
    SELECT account_id, key, expires_at, job_id, asset_id, batch_id
    FROM ${words.rows(':claims', {
      ...{ account_id: 'text', key: 'text', expires_at: 'bigint', job_id: 'uuid', asset_id: 'text', batch_id: 'uuid' },
    })} AS claim WHERE true
    ON CONFLICT (account_id, key) DO UPDATE SET
      expires_at = CASE WHEN known.expires_at <= :now THEN excluded.expires_at END,
      job_id = excluded.job_id, asset_id = excluded.asset_id, batch_id = excluded.batch_id`,
)

/**
 * Takes keys that `findHolders` found free, also where an expired claim has not been swept yet. Each key may be there only once. On a server
 * whoever claims a key holds the lock of its account, and found the key free under it.
 */
export function* claimKeys(claims: readonly ClaimedKey[]): Steps<void> {
  if (claims.length === 0) return
  const now = new Date(Math.max(...claims.map((claim) => claim.now.getTime())))
  const rows = claims.map(({ accountId, key, expiresAt, jobId = null, assetId = null, batchId = null }) => ({
    ...{ account_id: accountId, key, expires_at: expiresAt, job_id: jobId, asset_id: assetId, batch_id: batchId },
  }))
  yield* run(CLAIM, { now, ...toRows('claims', rows) })
}

const SWEPT_AT_ONCE = 500
const SWEEP = command(
  'keys.sweep',
  both({
    sqlite: `
      DELETE FROM idempotency_key WHERE (account_id, key) IN
        (SELECT account_id, key FROM idempotency_key WHERE expires_at <= :now ORDER BY expires_at LIMIT ${SWEPT_AT_ONCE})`,
    // By an array: the planner takes a limit for a share of the table, and would walk it for a join.
    postgres: `
      DELETE FROM idempotency_key WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM idempotency_key WHERE expires_at <= :now ORDER BY expires_at LIMIT ${SWEPT_AT_ONCE} FOR UPDATE SKIP LOCKED))`,
  }),
)

interface KeySteps extends Pick<IdempotencyStore, 'findKey'> {
  sweepSome(now: Date): Promise<number>
}

export const keySteps = defineStore<KeySteps>('keys', {
  findKey: read(function* (accountId, key, now) {
    const [holder = null] = yield* findHolders([{ accountId, key, now }])
    return holder
  }),
  sweepSome: chore(
    function* (now) {
      return yield* run(SWEEP, { now })
    },
    { isEssential: true },
  ),
})

export function createIdempotencyStore(open: OpenStore): IdempotencyStore {
  const { findKey, sweepSome } = open(keySteps)
  return {
    findKey,
    async sweepKeys(now) {
      for (let total = 0; ; ) {
        const swept = await sweepSome(now)
        total += swept
        if (swept < SWEPT_AT_ONCE) return total
      }
    },
  }
}
