/**
 * Statements whose rows come back as arrays in the order of their columns, which is faster than objects and smaller on its
 * way to the main thread. The row type states what the SQL selects: the two must be written together.
 */
import type { DatabaseSync, SQLInputValue } from 'node:sqlite'

interface RowStatement<Row> {
  get(...parameters: SQLInputValue[]): Row | undefined
  all(...parameters: SQLInputValue[]): Row[]
}

export function prepareRows<Row extends readonly unknown[]>(database: DatabaseSync, sql: string): RowStatement<Row> {
  const statement = database.prepare(sql)
  statement.setReturnArrays(true)
  return statement as unknown as RowStatement<Row>
}
