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

export function prepareFindNewestByHash(database: DatabaseSync): FindAssets {
  return prepareFindEach(database, 'hash = ?')
}
