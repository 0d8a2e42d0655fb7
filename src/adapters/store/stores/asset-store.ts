/**
 * Asset records, all within one account, and which bytes they refer to. A record past its life is gone for every reader, swept or not.
 * In SQLite outputs of jobs are assets with a job; in Postgres they have a table of their own.
 */
import type { AssetOrigin, AssetStore, MintOutcome, MintRequest } from '../../../domain/assets/asset-store.ts'
import { all, chore, defineStore, durable, get, read, run, type Steps, together } from '../statements/operation.ts'
import { both, command, insertInto, query, selectFrom } from '../statements/statement.ts'
import { accountStorage, asset } from '../tables/assets.ts'
import { encode, flag, nullable, omit, pick, type RowOf, shape, text } from '../tables/table.ts'
import { addRecords, removeRecords } from './account-storage.ts'
import { findKnownBlobs, type OfferedBlob, offerBlobs, type Retired, retireBlobs } from './blob-references.ts'
import { claimKeys, findHolders } from './idempotency-store.ts'

const record = shape({ ...omit(asset, 'seq', 'subfolder', 'note').fields, jobId: nullable(text()) })
const SHARED = 'seq, id, account_id, hash, size_bytes, content_type, file_path'
const UPLOAD_COLUMNS = `${SHARED}, tags, created_at, expires_at, NULL::text AS job_id`
const OUTPUT_COLUMNS = `${SHARED}, '[]' AS tags, created_at, expires_at, job_id::text AS job_id`
const IS_ALIVE = '(expires_at IS NULL OR expires_at > :now)'

type Sources = readonly AssetOrigin[]
const TABLES = { upload: `SELECT ${UPLOAD_COLUMNS} FROM asset`, output: `SELECT ${OUTPUT_COLUMNS} FROM output` }
const ONE_OF: Readonly<Record<AssetOrigin, string>> = { upload: 'AND job_id IS NULL', output: 'AND job_id IS NOT NULL' }

/** Of each wanted value of the column the record that was minted last, and that one first. */
function findEach(name: string, column: string, sources: Sources) {
  const [only] = sources.length === 1 ? sources : []
  const rest = `account_id = :accountId AND ${column} = wanted.value AND ${IS_ALIVE}`
  const newest = sources.map((source) => `(${TABLES[source]} WHERE ${rest} ORDER BY seq DESC LIMIT 1)`)
  return query(
    name,
    record,
    both({
      sqlite: `
        SELECT ${record.columns} FROM asset WHERE seq IN (
          SELECT (SELECT seq FROM asset WHERE ${rest} ${only === undefined ? '' : ONE_OF[only]} ORDER BY seq DESC LIMIT 1)
          FROM json_each(:wanted) AS wanted)
        ORDER BY seq DESC`,
      postgres: `
        SELECT found.* FROM (SELECT DISTINCT value FROM unnest(:wanted::text[]) AS value) AS wanted CROSS JOIN LATERAL (
          SELECT * FROM (${newest.join(' UNION ALL ')}) AS each ORDER BY seq DESC LIMIT 1) AS found
        ORDER BY found.seq DESC`,
    }),
  )
}

const FIND = findEach('assets.find', 'id', ['upload', 'output'])
const FIND_BY_HASH = findEach('assets.findByHash', 'hash', ['upload', 'output'])
const FIND_BY_PATH = {
  upload: findEach('assets.findUploadsByPath', 'file_path', ['upload']),
  output: findEach('assets.findOutputsByPath', 'file_path', ['output']),
}

// Among the newest thousand of the path.
const FIND_OUTPUT_IN = query('assets.findOutputIn', record, ({ either }) => {
  const recent = `account_id = :accountId AND file_path = :filePath ${either(ONE_OF.output, '')} ORDER BY seq DESC LIMIT 1000`
  return `SELECT ${either(record.columns, OUTPUT_COLUMNS)} FROM (
      SELECT * FROM ${either('asset INDEXED BY asset_output_path', 'output')} WHERE ${recent}) AS recent
    WHERE coalesce(subfolder, '') = :subfolder AND ${IS_ALIVE} ORDER BY seq DESC LIMIT 1`
})

// Bounds a walk over one caller's paths.
const WALKED_PATHS = 20_000

/** The newest record of each path, the newest first; '' for paths outside of the folders `temp`, `output` and `models`. */
function listOf(origin: AssetOrigin) {
  const [table, columns] = origin === 'upload' ? ['asset', UPLOAD_COLUMNS] : ['output', OUTPUT_COLUMNS]
  return query(
    `assets.list_${origin}s`,
    record,
    both({
      sqlite: `
        SELECT max(seq), ${record.columns} FROM (
          SELECT * FROM asset INDEXED BY asset_${origin}_path
          WHERE account_id = :accountId ${ONE_OF[origin]} AND file_path IS NOT NULL
            AND CASE :prefix WHEN '' THEN substr(file_path, 1, 5) <> 'temp/' AND substr(file_path, 1, 7) NOT IN ('output/', 'models/')
              ELSE substr(file_path, 1, length(:prefix)) = :prefix END
          LIMIT ${WALKED_PATHS})
        WHERE ${IS_ALIVE} GROUP BY file_path ORDER BY 1 DESC LIMIT :limit`,
      postgres: `
        SELECT * FROM (
          SELECT DISTINCT ON (file_path) ${columns} FROM (
            SELECT * FROM ${table} WHERE account_id = :accountId AND file_path IS NOT NULL
              AND CASE :prefix::text WHEN '' THEN NOT starts_with(file_path, 'temp/') AND NOT starts_with(file_path, 'output/')
                  AND NOT starts_with(file_path, 'models/')
                ELSE starts_with(file_path, :prefix::text) END
            ORDER BY file_path LIMIT ${WALKED_PATHS}) AS walked
          WHERE ${IS_ALIVE} ORDER BY file_path, seq DESC) AS newest
        ORDER BY seq DESC LIMIT :limit`,
    }),
  )
}
const LISTS = { upload: listOf('upload'), output: listOf('output') }

const numbered = shape({ seq: asset.fields.seq, ...record.fields })
// '0' is the character behind '/', so that a range of the index holds what lies below the folder. A folder's own files have no further
// slash.
const FIND_IN_FOLDER = query('assets.findInFolder', numbered, ({ either }) => {
  const inFolder = `account_id = :accountId AND file_path >= :folder || '/' AND file_path < :folder || '0' AND ${IS_ALIVE}`
  return either(
    `SELECT max(seq) AS seq, ${record.columns} FROM asset
     WHERE ${inFolder} AND job_id IS NULL AND instr(substr(file_path, length(:folder) + 2), '/') = 0
     GROUP BY file_path LIMIT :limit`,
    `SELECT DISTINCT ON (file_path) ${UPLOAD_COLUMNS} FROM asset
     WHERE ${inFolder} AND strpos(substr(file_path, length(:folder) + 2), '/') = 0
     ORDER BY file_path, seq DESC LIMIT :limit`,
  )
})

// On a server everything is decided under the row of the account, so two mints of the same bytes, or two claims of one key, follow
// each other.
const LOCK = query(
  'assets.lockAccount',
  shape({ id: text() }),
  (words) => `SELECT id FROM account WHERE id = :accountId ${words.lock('NO KEY UPDATE')}`,
)
const OWNS_HASH = query('assets.ownsHash', shape({ isOwned: flag() }), ({ either }) => {
  const isIn = (table: string) =>
    `EXISTS (SELECT 1 FROM ${table} WHERE hash = :hash AND account_id = :accountId AND ${IS_ALIVE})`
  return `SELECT ${isIn('asset')} ${either('', `OR ${isIn('output')}`)} AS is_owned`
})
// The same record already: made the newest and kept at least as long as asked. Outputs live and die with their job.
const IS_SAME = `account_id = :accountId AND hash = :hash AND tags = :tags AND ${IS_ALIVE}`
const RENEW = query('assets.renew', record, ({ either }) => {
  const longest = `expires_at = CASE WHEN expires_at IS NULL OR CAST(:expiresAt AS bigint) IS NULL THEN NULL
    ELSE ${either('max', 'greatest')}(expires_at, CAST(:expiresAt AS bigint)) END`
  return either(
    `UPDATE asset SET seq = 1 + (SELECT max(seq) FROM asset), ${longest} WHERE seq = (
       SELECT seq FROM asset INDEXED BY asset_identity WHERE ${IS_SAME} AND file_path IS :filePath AND job_id IS NULL
       ORDER BY seq DESC LIMIT 1)
     RETURNING ${record.columns}`,
    `WITH same AS MATERIALIZED (
       SELECT id AS same_id FROM asset WHERE ${IS_SAME} AND file_path IS NOT DISTINCT FROM :filePath ORDER BY seq DESC LIMIT 1)
     UPDATE asset SET seq = nextval('asset_seq'), ${longest} FROM same WHERE id = same_id RETURNING ${UPLOAD_COLUMNS}`,
  )
})
const minted = omit(asset, 'seq', 'subfolder', 'jobId', 'note')
const INSERT = command('assets.insert', `${insertInto(asset, minted)} ON CONFLICT (id) DO NOTHING`)

function* mint({ asset: wanted, keyClaim, mustOwnHash }: MintRequest): Steps<MintOutcome> {
  const { accountId, hash, sizeBytes } = wanted
  const now = keyClaim?.claimedAt ?? wanted.createdAt
  if ((yield* get(LOCK, { accountId })) === undefined) throw new Error(`No account ${accountId}.`)
  const [holder = null] = keyClaim === null ? [] : yield* findHolders([{ accountId, key: keyClaim.key, now }])
  if (holder !== null) return { outcome: 'key_reused', holder }
  const isOwned = (yield* get(OWNS_HASH, { accountId, hash, now }))?.isOwned ?? false
  if (mustOwnHash && !isOwned) return { outcome: 'hash_unknown' }
  const values = encode(minted, wanted)
  const { filePath, tags, expiresAt } = values
  const same = isOwned ? yield* get(RENEW, { accountId, hash, filePath, tags, expiresAt, now }) : undefined
  if (same === undefined && (yield* run(INSERT, values)) === 0) return { outcome: 'id_taken' }
  const kept = same ?? wanted
  if (keyClaim !== null)
    yield* claimKeys([{ accountId, key: keyClaim.key, now, expiresAt: keyClaim.expiresAt, assetId: kept.id }])
  if (same !== undefined) return { outcome: 'existing', asset: same }
  yield* addRecords([{ accountId, hash, sizeBytes }])
  return { outcome: 'minted', asset: wanted, newToAccount: !isOwned }
}

const removed = pick(asset, 'accountId', 'hash', 'sizeBytes')
// A record lives exactly as long as its job, so an output that is alive belongs to a job that is retained.
const REMOVE = query(
  'assets.remove',
  removed,
  ({ either }) => `DELETE FROM asset WHERE id = :assetId AND account_id = :accountId AND ${IS_ALIVE}
    ${either('AND NOT EXISTS (SELECT 1 FROM job WHERE job.id = asset.job_id)', '')} RETURNING ${removed.columns}`,
)
const IS_OUTPUT = query(
  'assets.isOutput',
  pick(asset, 'id'),
  ({ either }) =>
    `SELECT id FROM ${either('asset', 'output')} WHERE id = :assetId AND account_id = :accountId AND expires_at > :now LIMIT 1`,
)
const EXPIRE = query(
  'assets.expire',
  removed,
  both({
    sqlite: `
      DELETE FROM asset WHERE seq IN (
        SELECT seq FROM asset WHERE expires_at IS NOT NULL AND expires_at <= :now ORDER BY expires_at LIMIT :limit)
      RETURNING ${removed.columns}`,
    // By an array: the planner takes a limit that it does not know for a tenth of the table, and would walk it for a join.
    postgres: `
      DELETE FROM asset WHERE id = ANY (ARRAY(
        SELECT id FROM asset WHERE expires_at IS NOT NULL AND expires_at <= :now ORDER BY expires_at LIMIT :limit FOR UPDATE SKIP LOCKED))
      RETURNING ${removed.columns}`,
  }),
)

/** The blob behind each record that is gone becomes a candidate for collection. */
function* letGo(gone: readonly RowOf<typeof removed>[], now: Date): Steps<number> {
  yield* removeRecords(gone)
  yield* offerBlobs(gone, now)
  return gone.length
}

const STORED = query('assets.storedBytes', accountStorage, selectFrom(accountStorage, 'WHERE account_id = :accountId'))

interface AssetSteps extends Omit<AssetStore, 'announceBlob' | 'expire' | 'retireBlobs'> {
  announce(blobs: readonly OfferedBlob[], now: Date): Promise<void>
  expireSome(now: Date, limit: number): Promise<number>
  retireSome(cutoff: Date, limit: number): Promise<Retired>
}

export const assetSteps = defineStore<AssetSteps>('assets', {
  // On a server durable: whoever stores bytes outlives its crash, and a sweep must not take them before their record is written.
  announce: durable(offerBlobs, { isRelaxedAlone: true }),
  mint: durable(mint),
  find: read(function* (accountId, assetId, now) {
    return (yield* get(FIND, { accountId, wanted: [assetId], now })) ?? null
  }),
  findMany: read(function* (accountId, wanted, now) {
    return wanted.length === 0 ? [] : yield* all(FIND, { accountId, wanted, now })
  }),
  findNewestByPath: read(function* (accountId, { filePaths, origin, now }) {
    return filePaths.length === 0 ? [] : yield* all(FIND_BY_PATH[origin], { accountId, wanted: filePaths, now })
  }),
  findInFolders: read(function* (accountId, { folders, limit, now }) {
    const found = yield* together(...folders.map((folder) => all(FIND_IN_FOLDER, { accountId, folder, limit, now })))
    const newest = found.flat().sort((one, other) => other.seq - one.seq)
    return newest.slice(0, limit).map(({ seq: _, ...each }) => each)
  }),
  findOutputIn: read(function* (accountId, { filePath, subfolder, now }) {
    return (yield* get(FIND_OUTPUT_IN, { accountId, filePath, subfolder, now })) ?? null
  }),
  listFiles: read(function* (accountId, { origin, prefix, limit, now }) {
    return yield* all(LISTS[origin], { accountId, prefix, limit, now })
  }),
  findNewestByHash: read(function* (accountId, wanted, now) {
    return wanted.length === 0 ? [] : yield* all(FIND_BY_HASH, { accountId, wanted, now })
  }),
  remove: durable(
    function* (accountId, assetId, now) {
      if ((yield* letGo(yield* all(REMOVE, { accountId, assetId, now }), now)) > 0) return 'removed'
      return (yield* get(IS_OUTPUT, { accountId, assetId, now })) === undefined ? 'not_found' : 'in_use'
    },
    { isEssential: true },
  ),
  expireSome: chore(
    function* (now, limit) {
      return yield* letGo(yield* all(EXPIRE, { now, limit }), now)
    },
    { isEssential: true },
  ),
  retireSome: chore(retireBlobs, { isEssential: true }),
  storedBytes: read(function* (accountId) {
    return (yield* get(STORED, { accountId }))?.bytes ?? 0
  }),
  knownBlobs: read(findKnownBlobs),
})

// Rows of one transaction of a sweep: few enough that it holds up nobody.
const SLICE = 100

export function createAssetStore({ expireSome, retireSome, ...steps }: AssetSteps): AssetStore {
  return {
    ...steps,
    announceBlob: (hash, sizeBytes, now) => steps.announce([{ hash, sizeBytes }], now),
    async expire(now, limit) {
      for (let total = 0; ; ) {
        const slice = Math.min(SLICE, limit - total)
        const expired = slice > 0 ? await expireSome(now, slice) : 0
        total += expired
        if (expired < slice || slice <= 0) return total
      }
    },
    async retireBlobs(cutoff, limit) {
      const hashes: string[] = []
      // Candidates that turn out to be in use are many and do not count: the walk ends when none is left or enough were found.
      while (hashes.length < limit) {
        const slice = Math.min(SLICE, limit - hashes.length)
        const { retired, examined } = await retireSome(cutoff, slice)
        hashes.push(...retired)
        if (examined < slice) break
      }
      return hashes
    },
  }
}
