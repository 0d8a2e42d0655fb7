/** Builds and the releases that are cut from them. What changes them comes one after the other in an account, under one lock. */
import type { Build } from '../../../../domain/environments/build.ts'
import type { BuildChange, BuildStore, SaveOutcome } from '../../../../domain/environments/build-store.ts'
import type { BuildDefinition } from '../../../../domain/environments/definition.ts'
import { all, defineStore, durable, get, read, run, type Steps } from '../../statements/operation.ts'
import { command, insertInto, query, selectFrom, upsertInto } from '../../statements/statement.ts'
import { build } from '../../tables/builds.ts'
import { encode, integer, omit, type RowOf, type Shape, shape } from '../../tables/table.ts'
import { dropUses, lockBuilds, useBlobs } from './blob-uses.ts'
import { cut, dropRelease, findOwnRelease, listReleases, readLog, releaseIdsOf } from './releases.ts'

const OWN = 'WHERE account_id = :accountId AND id = :id'
const COUNT = query(
  'builds.count',
  shape({ known: integer() }),
  'SELECT count(*) AS known FROM build WHERE account_id = :accountId',
)
const FIND = query('builds.find', build, selectFrom(build, OWN))
const INSERT = command('builds.insert', insertInto(build))
const PUT = command('builds.put', upsertInto(build))
const REMOVE = command('builds.remove', `DELETE FROM build ${OWN}`)

const listed = shape({ ...omit(build, 'definition').fields, blobBytes: integer() })
const BLOB_BYTES = `(SELECT coalesce(sum(size_bytes), 0) FROM build_blob_use JOIN build_blob ON build_blob.id = blob_id
  WHERE holder = build.id) AS blob_bytes`
const LIST = query(
  'builds.list',
  listed,
  `SELECT ${(omit(build, 'definition') as Shape).columns}, ${BLOB_BYTES} FROM build
   WHERE account_id = :accountId AND id < :after ORDER BY id DESC LIMIT :limit`,
)

/** Behind every id. */
const LAST = '~'

const toBuild = ({ modelCount: _, packCount: __, ...rest }: RowOf<typeof build>): Build => rest

const counts = ({ models = [], customNodes = [] }: BuildDefinition) => ({
  modelCount: models.length,
  packCount: customNodes.length,
})

function* create(made: Parameters<BuildStore['create']>[0], limit: number): Steps<SaveOutcome> {
  const { accountId, id, definition, createdAt: at } = made
  yield* lockBuilds(accountId)
  if (((yield* get(COUNT, { accountId }))?.known ?? 0) >= limit) return { outcome: 'too_many' }
  const missing = yield* useBlobs({ accountId, holder: id, at }, definition)
  if (missing.length > 0) return { outcome: 'missing_blobs', blobIds: missing }
  const row = { ...made, updatedAt: at, lastVersion: 0, ...counts(definition) }
  yield* run(INSERT, encode(build, row))
  return { outcome: 'saved', build: toBuild(row) }
}

function* change(accountId: string, id: string, changed: BuildChange): Steps<SaveOutcome> {
  const { definition, expected, at } = changed
  yield* lockBuilds(accountId)
  const before = yield* get(FIND, { accountId, id })
  if (before === undefined) return { outcome: 'unknown' }
  if (expected !== null && before.updatedAt.getTime() !== expected.getTime()) return { outcome: 'changed' }
  const missing = yield* useBlobs({ accountId, holder: id, at }, definition)
  if (missing.length > 0) return { outcome: 'missing_blobs', blobIds: missing }
  const updatedAt = new Date(Math.max(at.getTime(), before.updatedAt.getTime() + 1))
  const texts = { name: changed.name ?? before.name, description: changed.description ?? before.description }
  const row = { ...before, ...texts, definition, updatedAt, ...counts(definition) }
  yield* run(PUT, encode(build, row))
  return { outcome: 'saved', build: toBuild(row) }
}

const weigh = (definition: BuildDefinition) => JSON.stringify(definition).length

export const buildStore = defineStore<BuildStore>('builds', {
  create: durable(create, { weigh: ({ definition }) => weigh(definition) }),
  find: read(function* (accountId, id) {
    const found = yield* get(FIND, { accountId, id })
    return found === undefined ? null : toBuild(found)
  }),
  list: read(function* (accountId, { after, limit }) {
    return yield* all(LIST, { accountId, after: after ?? LAST, limit })
  }),
  change: durable(change, { weigh: (_, __, { definition }) => weigh(definition) }),
  remove: durable(
    function* (accountId, id, at) {
      yield* lockBuilds(accountId)
      if ((yield* run(REMOVE, { accountId, id })) === 0) return false
      yield* dropUses(id, at)
      for (const releaseId of yield* releaseIdsOf(id)) yield* dropRelease(releaseId, at)
      return true
    },
    { isEssential: true },
  ),
  cut: durable(function* (wanted) {
    const { accountId, buildId, updatedAt } = wanted
    yield* lockBuilds(accountId)
    const found = yield* get(FIND, { accountId, id: buildId })
    if (found === undefined) return { outcome: 'no_build' }
    if (found.updatedAt.getTime() !== updatedAt.getTime()) return { outcome: 'changed' }
    const result = yield* cut(wanted, found)
    if (result.outcome === 'cut' && result.isNew)
      yield* run(PUT, encode(build, { ...found, lastVersion: result.release.version }))
    return result
  }),
  findRelease: read(findOwnRelease, { isSnapshot: true }),
  listReleases: read(listReleases, { isSnapshot: true }),
  removeRelease: durable(
    function* (accountId, id, at) {
      yield* lockBuilds(accountId)
      if ((yield* findOwnRelease(accountId, id)) === null) return false
      yield* dropRelease(id, at)
      return true
    },
    { isEssential: true },
  ),
  readLog: read(readLog, { isSnapshot: true }),
})
