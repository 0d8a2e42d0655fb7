/** Idempotency keys: one namespace per account, single use until they expire. They are claimed by whatever they stand for. */
import type { IdempotencyStore } from '../../../domain/idempotency/idempotency-key.ts'
import { chore, defineStore, get, type OpenStore, read, run } from '../statements/operation.ts'
import { both, command, query, selectFrom } from '../statements/statement.ts'
import { idempotencyKey } from '../tables/accounts.ts'
import { pick } from '../tables/table.ts'

const holder = pick(idempotencyKey, 'jobId', 'assetId', 'batchId')

const FIND = query(
  'keys.findHolder',
  holder,
  selectFrom(idempotencyKey, 'WHERE account_id = :accountId AND key = :key AND expires_at > :now', holder),
)
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
    const found = yield* get(FIND, { accountId, key, now })
    if (found === undefined) return null
    const { batchId, ...rest } = found
    return batchId === null ? rest : { ...rest, batchId }
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
