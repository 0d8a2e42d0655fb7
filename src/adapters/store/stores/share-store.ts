/** Links to the pages of endpoints. The endpoint's row is locked while one is made, so that it is there and its links are counted exactly. */
import type { EndpointKey } from '../../../domain/endpoints/endpoint-store.ts'
import type { Share, ShareStore } from '../../../domain/endpoints/shares/share.ts'
import { all, defineStore, durable, get, read, run, type Steps } from '../statements/operation.ts'
import { command, insertInto, query, selectFrom } from '../statements/statement.ts'
import { endpoint, endpointShare } from '../tables/endpoints.ts'
import { encode, integer, omit, pick, shape } from '../tables/table.ts'

const OWN = 'account_id = :accountId AND name = :name'
const told = omit(endpointShare, 'digest')
const key = pick(endpoint, 'name')

const LOCK = query('shares.lock', key, (words) =>
  selectFrom(endpoint, `WHERE ${OWN} AND is_removed = 0 ${words.lock('UPDATE')}`, key),
)
const COUNT = query(
  'shares.count',
  shape({ live: integer() }),
  `SELECT count(*) AS live FROM endpoint_share WHERE ${OWN} AND revoked_at IS NULL AND expires_at > :at`,
)
const INSERT = command('shares.insert', insertInto(endpointShare))
// What was counted for a link goes with it.
const ALL = `SELECT id FROM endpoint_share WHERE ${OWN}`
const OLDEST_ENDED = `${ALL} AND (revoked_at IS NOT NULL OR expires_at <= :at) ORDER BY created_at DESC, id LIMIT 1000 OFFSET :kept`
const dropOf = (name: string, ids: string) =>
  [
    `DELETE FROM run_ticket WHERE account_id = :accountId AND scope IN (SELECT 'share:' || id FROM (${ids}) AS dropped)`,
    `DELETE FROM run_scope WHERE account_id = :accountId AND scope IN (SELECT 'share:' || id FROM (${ids}) AS dropped)`,
    `DELETE FROM endpoint_share WHERE id IN (SELECT id FROM (${ids}) AS dropped)`,
  ].map((text, index) => command(`shares.${name}${index}`, text))
const DROP_ENDED = dropOf('dropEnded', OLDEST_ENDED)
const DROP_ALL = dropOf('dropAll', ALL)
const FIND = query('shares.find', told, selectFrom(endpointShare, 'WHERE digest = :digest', told))
const LIST = query('shares.list', told, selectFrom(endpointShare, `WHERE ${OWN} ORDER BY created_at DESC, id`, told))
const REVOKE = query(
  'shares.revoke',
  told,
  `UPDATE endpoint_share SET revoked_at = coalesce(revoked_at, :at) WHERE ${OWN} AND id = :id RETURNING ${told.columns}`,
)

/** With their endpoint. */
export function* dropShares(key: EndpointKey): Steps<void> {
  for (const drop of DROP_ALL) yield* run(drop, { ...key })
}

export const shareStore = defineStore<ShareStore>('shares', {
  create: durable(function* (share, limit) {
    const { accountId, name, createdAt } = share
    if ((yield* get(LOCK, { accountId, name })) === undefined) return { outcome: 'no_endpoint' }
    const now = { accountId, name, at: createdAt }
    if (((yield* get(COUNT, now))?.live ?? 0) >= limit) return { outcome: 'too_many' }
    for (const drop of DROP_ENDED) yield* run(drop, { ...now, kept: limit })
    yield* run(INSERT, encode(endpointShare, share))
    return { outcome: 'created' }
  }),
  findByDigest: read(function* (digest) {
    return (yield* get(FIND, { digest })) ?? null
  }),
  list: read(function* ({ accountId, name }) {
    const found: readonly Share[] = yield* all(LIST, { accountId, name })
    return found
  }),
  revoke: durable(
    function* ({ accountId, name }, id, at) {
      return (yield* get(REVOKE, { accountId, name, id, at })) ?? null
    },
    { isEssential: true },
  ),
})
