/**
 * Which object of the bucket holds the bytes of which hash. The row of a hash orders storing and removing the same bytes: a removal
 * locks the row while it checks whether the bytes are still used, and an upload of the same bytes waits for that lock.
 */
import type { BlobIndex, StoredObject } from '../../../../domain/assets/blob-index.ts'
import {
  type Asked,
  all,
  chore,
  defineStore,
  durable,
  get,
  read,
  relaxed,
  report,
  run,
  type Steps,
  together,
} from '../../statements/operation.ts'
import { command, insertInto, postgresOnly, query, selectFrom, toRows } from '../../statements/statement.ts'
import { blob, blobGarbage } from '../../tables/assets.ts'
import { pick } from '../../tables/table.ts'
import { createGather } from '../database/gather.ts'
import { openShared, runOn } from '../shared-stores.ts'
import type { StoreParts } from '../stores/store-parts.ts'

const object = pick(blob, 'objectKey', 'sizeBytes')
const objectKey = pick(blob, 'objectKey')
const hashOnly = pick(blob, 'hash')

const FIND = query('objects.find', object, postgresOnly(selectFrom(blob, 'WHERE hash = :hash', object)))
const HASH_OF = query('objects.hashOf', hashOnly, postgresOnly('SELECT hash FROM blob WHERE object_key = :objectKey'))
const KEEP = query(
  'objects.keep',
  pick(blob, 'hash', 'objectKey', 'sizeBytes'),
  postgresOnly(`
    INSERT INTO blob (hash, object_key, size_bytes, since)
    SELECT * FROM unnest(:kept.hash::text[], :kept.object_key::text[], :kept.size_bytes::bigint[], :kept.since::bigint[])
      AS kept(hash, object_key, size_bytes, since) ORDER BY hash
    ON CONFLICT (hash) DO UPDATE SET since = greatest(blob.since, excluded.since)
    RETURNING hash, object_key, size_bytes`),
)
const TOUCH = query(
  'objects.touch',
  object,
  postgresOnly('UPDATE blob SET since = greatest(since, :now) WHERE hash = :hash RETURNING object_key, size_bytes'),
)
const LOCK = query('objects.lock', objectKey, postgresOnly('SELECT object_key FROM blob WHERE hash = :hash FOR UPDATE'))
const FORGET = command('objects.forget', postgresOnly('DELETE FROM blob WHERE hash = :hash'))
const THROW_AWAY = command(
  'objects.throwAway',
  postgresOnly(`${insertInto(blobGarbage)} ON CONFLICT (object_key) DO NOTHING`),
)
const LIST = query(
  'objects.list',
  hashOnly,
  postgresOnly('SELECT hash FROM blob WHERE hash > :after ORDER BY hash LIMIT :limit'),
)
const OLD_GARBAGE = query(
  'objects.garbage',
  objectKey,
  postgresOnly('SELECT object_key FROM blob_garbage WHERE since < :before ORDER BY since LIMIT :limit'),
)
const FORGET_GARBAGE = command(
  'objects.forgetGarbage',
  postgresOnly('DELETE FROM blob_garbage WHERE object_key = ANY (:objectKeys::text[])'),
)
const THROW_AWAY_MANY = command(
  'objects.throwAwayMany',
  postgresOnly(`
    INSERT INTO blob_garbage (object_key, since)
    SELECT DISTINCT object_key, :now::bigint FROM unnest(:objectKeys::text[]) AS thrown(object_key)
    ON CONFLICT (object_key) DO UPDATE SET since = excluded.since`),
)
const KNOWN = query(
  'objects.known',
  objectKey,
  postgresOnly(`
    SELECT object_key FROM blob WHERE object_key = ANY (:objectKeys::text[])
    UNION ALL SELECT object_key FROM blob_garbage WHERE object_key = ANY (:objectKeys::text[])`),
)

interface KeptObject extends StoredObject {
  readonly hash: string
  readonly now: Date
}

/** Each hash once. Returns what is recorded for each of them, in their order. */
function* keepObjects(kept: readonly KeptObject[]): Steps<StoredObject[]> {
  const rows = kept.map(({ hash, objectKey, sizeBytes, now }) => ({
    ...{ hash, object_key: objectKey, size_bytes: sizeBytes, since: now },
  }))
  const recorded = new Map((yield* all(KEEP, toRows('kept', rows))).map(({ hash, ...stored }) => [hash, stored]))
  return kept.map(({ hash, objectKey, sizeBytes }) => recorded.get(hash) ?? { objectKey, sizeBytes })
}

function letGo(hash: string, objectKey: string, now: Date): readonly [Asked<number>, Asked<number>] {
  return [run(FORGET, { hash }), run(THROW_AWAY, { objectKey, since: now })]
}

interface BlobSteps extends Omit<BlobIndex, 'keep' | 'remove' | 'list'> {
  keepAll(kept: readonly KeptObject[]): Promise<readonly StoredObject[]>
  listSome(after: string, limit: number): Promise<readonly string[]>
}

const blobSteps = defineStore<BlobSteps>('blobs', {
  find: read(function* (hash) {
    return (yield* get(FIND, { hash })) ?? null
  }),
  // Durable: whoever keeps bytes outlives a crash of the server, and records then what leads to them.
  keepAll: durable(keepObjects, { isRepeatable: true }),
  replace: durable(function* (hash, stored, { bad, now }) {
    const present = yield* get(LOCK, { hash })
    if (present?.objectKey === bad) yield* together(...letGo(hash, bad, now))
    const [kept = stored] = yield* keepObjects([{ hash, ...stored, now }])
    return kept
  }),
  // Relaxed: the row is there, and the announcement of the bytes is what keeps it.
  touch: relaxed(function* (hash, now) {
    return (yield* get(TOUCH, { hash, now })) ?? null
  }),
  listSome: report(function* (after, limit) {
    return (yield* all(LIST, { after, limit })).map(({ hash }) => hash)
  }),
  garbage: report(function* (before, limit) {
    return (yield* all(OLD_GARBAGE, { before, limit })).map(({ objectKey }) => objectKey)
  }),
  forgetGarbage: chore(function* (objectKeys) {
    if (objectKeys.length > 0) yield* run(FORGET_GARBAGE, { objectKeys })
  }),
  hashOf: read(function* (objectKey) {
    return (yield* get(HASH_OF, { objectKey }))?.hash ?? null
  }),
  throwAway: chore(function* (objectKeys, now) {
    if (objectKeys.length > 0) yield* run(THROW_AWAY_MANY, { objectKeys, now })
  }),
  knownObjects: report(function* (objectKeys) {
    return objectKeys.length === 0 ? [] : (yield* all(KNOWN, { objectKeys })).map(({ objectKey }) => objectKey)
  }),
})

const PORTION = 1000
const KEPT_AT_ONCE = 64

export function createBlobIndex(parts: StoreParts): BlobIndex {
  const { keepAll, listSome, ...steps } = openShared(blobSteps, parts)
  const keep = createGather({
    run: keepAll,
    onBatch: parts.durable.noteBatch,
    maxItems: KEPT_AT_ONCE,
    maxRunning: 2,
    nameOf: ({ hash }: KeptObject) => hash,
  })
  return {
    ...steps,
    keep: (hash, stored, now) => keep({ hash, ...stored, now }),
    // Whether the bytes are known is asked elsewhere, while the row is locked.
    remove: (hash, { isKnown, now }) =>
      parts.chore.transaction(async (tx) => {
        const locked = await tx.get(LOCK, { hash })
        if (locked === undefined || (await isKnown())) return
        await runOn(tx, together(...letGo(hash, locked.objectKey, now)))
      }),
    async *list() {
      for (let after: string | undefined = ''; after !== undefined; ) {
        const hashes = await listSome(after, PORTION)
        if (hashes.length > 0) yield hashes
        after = hashes.length < PORTION ? undefined : hashes.at(-1)
      }
    },
  }
}
