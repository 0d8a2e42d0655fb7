/** Reads of asset records, all within one account. Of each wanted value the record that was minted last, and that one first. */
import type { DatabaseSync } from 'node:sqlite'
import type { AssetRow } from '../../../rows/asset-row.ts'
import {
  type AssetsQuery,
  type FilesQuery,
  type FoldersQuery,
  type SubfolderQuery,
  WALKED_PATHS,
} from '../../../search/asset-queries.ts'
import { prepareRows } from '../statement.ts'
import { ASSET_COLUMNS, IS_ALIVE } from './asset-row.ts'

type FindAssets = (query: AssetsQuery) => AssetRow[]

function prepareFindEach(database: DatabaseSync, condition: string): FindAssets {
  const select = prepareRows<readonly [seq: number, ...row: AssetRow]>(
    database,
    `SELECT seq, ${ASSET_COLUMNS} FROM asset WHERE account_id = ? AND ${condition} AND ${IS_ALIVE}
     ORDER BY seq DESC LIMIT 1`,
  )
  return ({ accountId, wanted, now }) =>
    [...new Set(wanted)]
      .map((one) => select.get(accountId, one, now))
      .filter((found) => found !== undefined)
      .sort(([a], [b]) => b - a)
      .map(([, ...row]) => row)
}

export function prepareFindAssets(database: DatabaseSync): FindAssets {
  return prepareFindEach(database, 'id = ?')
}

export function prepareFindUploadsByPath(database: DatabaseSync): FindAssets {
  return prepareFindEach(database, 'file_path = ? AND job_id IS NULL')
}

export function prepareFindOutputsByPath(database: DatabaseSync): FindAssets {
  return prepareFindEach(database, 'file_path = ? AND job_id IS NOT NULL')
}

/** The newest output of this path that an engine put into this subfolder, among the newest thousand of the path. */
export function prepareFindOutputsIn(database: DatabaseSync): (query: SubfolderQuery) => AssetRow | null {
  const select = prepareRows<AssetRow>(
    database,
    `SELECT ${ASSET_COLUMNS} FROM (
       SELECT * FROM asset INDEXED BY asset_output_path
       WHERE account_id = ? AND file_path = ? AND job_id IS NOT NULL ORDER BY seq DESC LIMIT 1000)
     WHERE coalesce(subfolder, '') = ? AND ${IS_ALIVE} ORDER BY seq DESC LIMIT 1`,
  )
  return ({ accountId, filePath, subfolder, now }) => select.get(accountId, filePath, subfolder, now) ?? null
}

/** The newest record of each path, the newest first. */
export function prepareListFiles(database: DatabaseSync): (query: FilesQuery) => AssetRow[] {
  const prepare = (index: string, isOutput: string) =>
    prepareRows<readonly [seq: number, ...row: AssetRow]>(
      database,
      `SELECT max(seq), ${ASSET_COLUMNS} FROM (
         SELECT * FROM asset INDEXED BY ${index} WHERE account_id = ?1 AND job_id IS ${isOutput} AND file_path IS NOT NULL
           AND CASE ?2 WHEN '' THEN substr(file_path, 1, 5) <> 'temp/' AND substr(file_path, 1, 7) NOT IN ('output/', 'models/')
             ELSE substr(file_path, 1, length(?2)) = ?2 END
         LIMIT ${WALKED_PATHS})
       WHERE (expires_at IS NULL OR expires_at > ?3) GROUP BY file_path ORDER BY 1 DESC LIMIT ?4`,
    )
  const select = {
    upload: prepare('asset_upload_path', 'NULL'),
    output: prepare('asset_output_path', 'NOT NULL'),
  }
  return ({ accountId, origin, prefix, limit, now }) =>
    select[origin].all(accountId, prefix, now, limit).map(([, ...row]) => row)
}

/** A range of the index by path; the newest record of a path comes first, later ones of the same path are skipped. */
export function prepareFindInFolders(database: DatabaseSync): (query: FoldersQuery) => AssetRow[] {
  // `instr` leaves out files of deeper folders: the folder's own files have no further slash.
  const select = prepareRows<readonly [seq: number, ...row: AssetRow]>(
    database,
    `SELECT MAX(seq), ${ASSET_COLUMNS} FROM asset
     WHERE account_id = ? AND job_id IS NULL AND file_path >= ? AND file_path < ?
       AND instr(substr(file_path, ?), '/') = 0 AND ${IS_ALIVE}
     GROUP BY file_path LIMIT ?`,
  )
  return ({ accountId, folders, limit, now }) =>
    folders
      .flatMap((folder) => select.all(accountId, `${folder}/`, `${folder}0`, [...folder].length + 2, now, limit))
      .sort(([a], [b]) => b - a)
      .slice(0, limit)
      .map(([, ...row]) => row)
}

export function prepareFindNewestByHash(database: DatabaseSync): FindAssets {
  return prepareFindEach(database, 'hash = ?')
}
