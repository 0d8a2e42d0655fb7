/** Reads of asset records, all within one account. Lists of names and hashes travel as JSON so that statements stay few. */
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
  const select = prepareRows<AssetRow>(
    database,
    `SELECT ${ASSET_COLUMNS} FROM asset WHERE account_id = ? AND ${condition} AND ${IS_ALIVE} ORDER BY seq DESC LIMIT 1`,
  )
  return ({ accountId, wanted, now }) =>
    [...new Set(wanted)].map((one) => select.get(accountId, one, now)).filter((row) => row !== undefined)
}

export function prepareFindAssets(database: DatabaseSync): FindAssets {
  return prepareFindEach(database, 'id = ?')
}

export function prepareFindNewestByPath(database: DatabaseSync): FindAssets {
  return prepareFindEach(database, 'file_path = ?')
}

export function prepareFindNewestByHash(database: DatabaseSync): FindAssets {
  return prepareFindEach(database, 'hash = ?')
}
