/**
 * Reads of asset records, all within one account. Of each wanted value the record that was minted last, and that one first. A record
 * past its life is gone for every reader, swept or not.
 */
import {
  type AssetsQuery,
  type FilesQuery,
  type FoldersQuery,
  type SubfolderQuery,
  WALKED_PATHS,
} from '../../../search/asset-queries.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { type NumberedAssetRow, OUTPUT_COLUMNS, UPLOAD_COLUMNS } from './asset-row.ts'

export type FindAssets = (db: Queryable, query: AssetsQuery) => Promise<NumberedAssetRow[]>

const IS_ALIVE = '(expires_at IS NULL OR expires_at > $3)'

/** For each wanted value the newest of its records; `sources` select from one table each. */
function findEach(name: string, sources: readonly string[]): FindAssets {
  const newest = sources.map((source) => `(${source} AND account_id = $1 AND ${IS_ALIVE} ORDER BY seq DESC LIMIT 1)`)
  const select = statement<NumberedAssetRow>(
    `assets.${name}`,
    `SELECT found.* FROM (SELECT DISTINCT value FROM unnest($2::text[]) AS value) AS wanted CROSS JOIN LATERAL (
       SELECT * FROM (${newest.join(' UNION ALL ')}) AS each ORDER BY seq DESC LIMIT 1) AS found
     ORDER BY found.seq DESC`,
  )
  return (db, { accountId, wanted, now }) => db.all(select, [accountId, wanted, now])
}

const upload = (condition: string) => `SELECT ${UPLOAD_COLUMNS} FROM asset WHERE ${condition}`
const output = (condition: string) => `SELECT ${OUTPUT_COLUMNS} FROM output WHERE ${condition}`

export const findAssets = findEach('find', [upload('id = wanted.value'), output('id = wanted.value')])
export const findUploadsByPath = findEach('find-uploads-by-path', [upload('file_path = wanted.value')])
export const findOutputsByPath = findEach('find-outputs-by-path', [output('file_path = wanted.value')])
export const findNewestByHash = findEach('find-by-hash', [upload('hash = wanted.value'), output('hash = wanted.value')])

const FIND_OUTPUT_IN = statement<NumberedAssetRow>(
  'assets.find-output-in',
  `SELECT ${OUTPUT_COLUMNS} FROM (
     SELECT * FROM output WHERE account_id = $1 AND file_path = $2 ORDER BY seq DESC LIMIT 1000) AS recent
   WHERE coalesce(subfolder, '') = $4 AND ${IS_ALIVE} ORDER BY seq DESC LIMIT 1`,
)

/** The newest output of this path that an engine put into this subfolder, among the newest thousand of the path. */
export async function findOutputIn(db: Queryable, query: SubfolderQuery): Promise<NumberedAssetRow | null> {
  return (await db.get(FIND_OUTPUT_IN, [query.accountId, query.filePath, query.now, query.subfolder])) ?? null
}

function listOf(origin: 'upload' | 'output', columns: string, table: string) {
  return statement<NumberedAssetRow>(
    `assets.list-${origin}s`,
    `SELECT * FROM (
       SELECT DISTINCT ON (file_path) ${columns} FROM (
         SELECT * FROM ${table} WHERE account_id = $1 AND file_path IS NOT NULL
           AND CASE $2::text WHEN '' THEN NOT starts_with(file_path, 'temp/') AND NOT starts_with(file_path, 'output/')
               AND NOT starts_with(file_path, 'models/')
             ELSE starts_with(file_path, $2::text) END
         ORDER BY file_path LIMIT ${WALKED_PATHS}) AS walked
       WHERE ${IS_ALIVE} ORDER BY file_path, seq DESC) AS newest
     ORDER BY seq DESC LIMIT $4`,
  )
}

const LISTS = {
  upload: listOf('upload', UPLOAD_COLUMNS, 'asset'),
  output: listOf('output', OUTPUT_COLUMNS, 'output'),
}

/** The newest record of each path, the newest first. */
export function listFiles(db: Queryable, query: FilesQuery): Promise<NumberedAssetRow[]> {
  const { accountId, origin, prefix, limit, now } = query
  return db.all(LISTS[origin], [accountId, prefix, now, limit])
}

// '0' is the character behind '/', so that a range of the index holds what lies below the folder.
const FIND_IN_FOLDERS = statement<NumberedAssetRow>(
  'assets.find-in-folders',
  `SELECT found.* FROM unnest($2::text[]) AS folder CROSS JOIN LATERAL (
     SELECT DISTINCT ON (file_path) ${UPLOAD_COLUMNS} FROM asset
     WHERE account_id = $1 AND file_path >= folder || '/' AND file_path < folder || '0'
       AND strpos(substr(file_path, length(folder) + 2), '/') = 0 AND ${IS_ALIVE}
     ORDER BY file_path, seq DESC LIMIT $4) AS found
   ORDER BY found.seq DESC LIMIT $4`,
)

export function findInFolders(db: Queryable, query: FoldersQuery): Promise<NumberedAssetRow[]> {
  return db.all(FIND_IN_FOLDERS, [query.accountId, query.folders, query.now, query.limit])
}
