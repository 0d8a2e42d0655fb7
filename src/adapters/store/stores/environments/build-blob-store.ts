/** Uploaded packs and models. Their bytes go with the last of them: they are then offered to the collection of bytes without a record. */
import type { BuildBlobStore, StoredBuildBlob } from '../../../../domain/environments/build-blob-store.ts'
import { all, chore, defineStore, durable, get, read, run, type Steps } from '../../statements/operation.ts'
import { command, query, selectFrom, upsertInto } from '../../statements/statement.ts'
import { buildBlob } from '../../tables/builds.ts'
import { encode, integer, type RowOf, shape } from '../../tables/table.ts'
import { offerBlobs } from '../blob-references.ts'
import { lockBuilds } from './blob-uses.ts'

const FIND_CONTENT = query(
  'buildBlobs.findContent',
  buildBlob,
  selectFrom(buildBlob, 'WHERE account_id = :accountId AND kind = :kind AND sha256 = :sha256'),
)
const SUM = query(
  'buildBlobs.sum',
  shape({ count: integer(), bytes: integer() }),
  `SELECT count(*) AS count, coalesce(sum(size_bytes), 0) AS bytes FROM build_blob WHERE account_id = :accountId AND id <> :id`,
)
const PUT = command('buildBlobs.put', upsertInto(buildBlob))
const FIND_BY_ID = query('buildBlobs.findById', buildBlob, selectFrom(buildBlob, 'WHERE id = :id'))
const FIND = query('buildBlobs.find', buildBlob, selectFrom(buildBlob, 'WHERE account_id = :accountId AND id = :id'))
const COMPLETE = command(
  'buildBlobs.complete',
  'UPDATE build_blob SET hash = :hash, uploaded_at = :at, used_at = :at WHERE id = :id AND uploaded_at IS NULL',
)
const LIST = query(
  'buildBlobs.list',
  buildBlob,
  selectFrom(
    buildBlob,
    `WHERE account_id = :accountId AND uploaded_at IS NOT NULL AND (:kind = '' OR kind = :kind)
     ORDER BY created_at DESC, id LIMIT :limit`,
  ),
)
const FIND_NAMED = query('buildBlobs.findNamed', buildBlob, (words) =>
  selectFrom(
    buildBlob,
    `WHERE account_id = :accountId AND kind = :kind AND uploaded_at IS NOT NULL AND ${words.isIn('filename', ':filenames')}
     ORDER BY filename, created_at DESC, id`,
  ),
)
const REMOVE_UNUSED = query(
  'buildBlobs.removeUnused',
  buildBlob,
  `DELETE FROM build_blob WHERE id IN (
     SELECT id FROM build_blob AS unused
     WHERE used_at < :latest
       AND ((uploaded_at IS NULL AND used_at < :announcedBefore)
         OR (used_at < :unusedBefore AND (SELECT holder FROM build_blob_use WHERE blob_id = unused.id LIMIT 1) IS NULL))
     ORDER BY used_at LIMIT :limit)
     AND used_at < :latest
   RETURNING ${buildBlob.columns}`,
)

function toBlob({ usedAt: _, ...rest }: RowOf<typeof buildBlob>): StoredBuildBlob {
  return rest
}

function* announce(
  wanted: Parameters<BuildBlobStore['announce']>[0],
  limits: Parameters<BuildBlobStore['announce']>[1],
): Steps<Awaited<ReturnType<BuildBlobStore['announce']>>> {
  const { accountId, kind, sha256, createdAt } = wanted
  yield* lockBuilds(accountId)
  const known = yield* get(FIND_CONTENT, { accountId, kind, sha256 })
  const row =
    known === undefined
      ? { ...wanted, uploadedAt: null, hash: null, usedAt: createdAt }
      : // What was only announced is what it is announced as now.
        { ...known, ...(known.uploadedAt === null && { filename: wanted.filename, sizeBytes: wanted.sizeBytes }) }
  if (row.uploadedAt === null) {
    const { count, bytes } = (yield* get(SUM, { accountId, id: row.id })) ?? { count: 0, bytes: 0 }
    if (count >= limits.count) return { outcome: 'too_many' }
    if (bytes + row.sizeBytes > limits.bytes) return { outcome: 'no_room' }
  }
  const usedAt = new Date(Math.max(row.usedAt.getTime(), createdAt.getTime()))
  yield* run(PUT, encode(buildBlob, { ...row, usedAt }))
  return { outcome: 'announced', blob: toBlob(row) }
}

export const buildBlobStore = defineStore<BuildBlobStore>('buildBlobs', {
  announce: durable(announce),
  findById: read(function* (id) {
    const found = yield* get(FIND_BY_ID, { id })
    return found === undefined ? null : toBlob(found)
  }),
  find: read(function* (accountId, id) {
    const found = yield* get(FIND, { accountId, id })
    return found === undefined ? null : toBlob(found)
  }),
  complete: durable(function* (id, hash, at) {
    return (yield* run(COMPLETE, { id, hash, at })) > 0
  }),
  list: read(function* (accountId, { kind, limit }) {
    return (yield* all(LIST, { accountId, kind: kind ?? '', limit })).map(toBlob)
  }),
  findNamed: read(function* (accountId, kind, filenames) {
    return (yield* all(FIND_NAMED, { accountId, kind, filenames })).map(toBlob)
  }),
  removeUnused: chore(
    function* ({ announcedBefore, unusedBefore, now, limit }) {
      const latest = announcedBefore > unusedBefore ? announcedBefore : unusedBefore
      const removed = yield* all(REMOVE_UNUSED, { announcedBefore, unusedBefore, latest, limit })
      const stored = removed.flatMap(({ hash, sizeBytes }) => (hash === null ? [] : [{ hash, sizeBytes }]))
      yield* offerBlobs(stored, now)
      return removed.length
    },
    { isEssential: true },
  ),
})
