/** Whether a submit into this pool is to be refused: it belongs to a deployment that takes no jobs now. */
import type { DatabaseSync } from 'node:sqlite'
import { prepareRows } from '../statement.ts'

export function prepareIsPoolClosed(database: DatabaseSync): (pool: string) => boolean {
  const select = prepareRows<[number]>(database, `SELECT 1 FROM deployment WHERE id = ? AND state <> 'ready'`)
  // Most jobs go to the common pool, which belongs to no deployment: they cost no statement.
  return (pool) => pool !== 'default' && select.get(pool) !== undefined
}
