/** Numbers for output names, counted per account, folder and prefix; a number is never given twice. */
import type { DatabaseSync } from 'node:sqlite'
import { prepareRows } from '../statement.ts'

export interface ReserveInput {
  readonly accountId: string
  readonly folder: string
  readonly prefix: string
  readonly count: number
}

export function prepareReserveOutputNumbers(database: DatabaseSync): (input: ReserveInput) => number {
  const advance = prepareRows<[number]>(
    database,
    `INSERT INTO output_number (account_id, folder, prefix, last) VALUES (?1, ?2, ?3, ?4)
     ON CONFLICT (account_id, folder, prefix) DO UPDATE SET last = last + ?4 RETURNING last`,
  )
  return ({ accountId, folder, prefix, count }) => {
    const last = advance.get(accountId, folder, prefix, count)?.[0] ?? count
    return last - count + 1
  }
}
