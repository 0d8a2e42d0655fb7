/** Keys of accounts at providers, sealed. A change takes the lock that calls of the account are admitted under, and raises its number. */
import type { ProviderKeyStore } from '../../../domain/models/access/provider-keys.ts'
import { all, defineStore, durable, get, read, run, type Steps, together } from '../statements/operation.ts'
import { command, query, selectFrom, upsertInto } from '../statements/statement.ts'
import { providerKey, routerAccount } from '../tables/calls.ts'
import { encode, omit, pick } from '../tables/table.ts'
import { lockPool } from './calls/call-pool.ts'

const OWN = 'account_id = :accountId AND provider = :provider'

const version = pick(routerAccount, 'keysVersion')
const VERSION = query(
  'providerKeys.version',
  version,
  selectFrom(routerAccount, 'WHERE account_id = :accountId', version),
)
const OF_ACCOUNT = query(
  'providerKeys.ofAccount',
  providerKey,
  selectFrom(providerKey, 'WHERE account_id = :accountId ORDER BY provider'),
)
const PUT = command('providerKeys.put', upsertInto(providerKey, providerKey, omit(providerKey, 'createdAt')))
const REMOVE = command('providerKeys.remove', `DELETE FROM provider_key WHERE ${OWN}`)
const RAISE = command(
  'providerKeys.raise',
  'UPDATE router_account SET keys_version = keys_version + 1 WHERE account_id = :accountId',
)
const PAGE = query(
  'providerKeys.page',
  providerKey,
  selectFrom(
    providerKey,
    'WHERE (account_id, provider) > (:accountId, :provider) ORDER BY account_id, provider LIMIT :limit',
  ),
)
const RESEAL = command(
  'providerKeys.reseal',
  `UPDATE provider_key SET sealed = :sealed WHERE ${OWN} AND sealed = :former`,
)

function* raise(accountId: string): Steps<void> {
  yield* run(RAISE, { accountId })
}

export const providerKeyStore = defineStore<ProviderKeyStore>('providerKeys', {
  // The number first: keys that are newer than it are found out when a call is admitted, older ones would not be.
  ofAccount: read(function* (accountId) {
    const [found, keys] = yield* together(get(VERSION, { accountId }), all(OF_ACCOUNT, { accountId }))
    return { version: found?.keysVersion ?? 0, keys }
  }),
  put: durable(function* (key, max) {
    const { accountId, provider } = key
    yield* lockPool(accountId)
    const keys = yield* all(OF_ACCOUNT, { accountId })
    const isKnown = keys.some((each) => each.provider === provider)
    if (!isKnown && keys.length >= max) return { outcome: 'too_many' }
    yield* run(PUT, encode(providerKey, key))
    yield* raise(accountId)
    return { outcome: isKnown ? 'replaced' : 'added' }
  }),
  remove: durable(
    function* (accountId, provider) {
      yield* lockPool(accountId)
      const removed = yield* run(REMOVE, { accountId, provider })
      if (removed > 0) yield* raise(accountId)
      return removed > 0
    },
    { isEssential: true },
  ),
  page: read(function* (after, limit) {
    return yield* all(PAGE, { accountId: after?.accountId ?? '', provider: after?.provider ?? '', limit })
  }),
  reseal: durable(function* ({ accountId, provider, sealed: former }, sealed) {
    return (yield* run(RESEAL, { accountId, provider, sealed, former })) > 0
  }),
})
