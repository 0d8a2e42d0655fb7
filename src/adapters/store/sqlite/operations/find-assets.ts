/** Reads of asset records, all within one account. Of each wanted value the record that was minted last, and that one first. */
import type { DatabaseSync } from 'node:sqlite'
import { ASSET_COLUMNS, type AssetRow, IS_ALIVE } from './asset-row.ts'
import { prepareRows } from './statement.ts'

export interface AssetsQuery {
  readonly accountId: string
  /** Ids, file paths or hashes. */
  readonly wanted: readonly string[]
  readonly now: number
}

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

export interface FolderAssetsQuery {
  readonly accountId: string
  readonly folders: readonly string[]
  readonly limit: number
  readonly now: number
}

/** A range of the index by path; the newest record of a path comes first, later ones of the same path are skipped. */
export function prepareFindInFolders(database: DatabaseSync): (query: FolderAssetsQuery) => AssetRow[] {
  // `instr` keeps what lies deeper out: the folder's own files have no further slash.
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
