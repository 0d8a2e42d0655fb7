/** Runs the statements of both databases on SQLite. Each is prepared when it is first asked for. */
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import {
  type Command,
  createReader,
  placeValues,
  type Query,
  type Value,
  type Values,
} from '../statements/statement.ts'
import type { Stored } from '../tables/table.ts'

export interface Statements {
  /** The first row, or undefined. */
  get<Row>(query: Query<Row>, values?: Values): Row | undefined
  all<Row>(query: Query<Row>, values?: Values): Row[]
  /** How many rows it changed. */
  run(command: Command, values?: Values): number
}

interface Prepared {
  readonly statement: StatementSync
  place(values: Values): SQLInputValue[]
  read(row: unknown): unknown
}

export function openStatements(database: DatabaseSync): Statements {
  const known = new Map<Command, Prepared | null>()

  function prepared(command: Command): Prepared | null {
    let found = known.get(command)
    if (found === undefined) {
      found = prepare(database, command)
      known.set(command, found)
    }
    return found
  }

  return {
    get<Row>(query: Query<Row>, values: Values = {}) {
      const found = prepared(query)
      const row = found?.statement.get(...found.place(values))
      return row === undefined ? undefined : (found?.read(row) as Row)
    },
    all<Row>(query: Query<Row>, values: Values = {}) {
      const found = prepared(query)
      return found === null ? [] : (found.statement.all(...found.place(values)).map(found.read) as Row[])
    },
    run(command, values = {}) {
      const found = prepared(command)
      return found === null ? 0 : Number(found.statement.run(...found.place(values)).changes)
    },
  }
}

function prepare(database: DatabaseSync, command: Command | Query<unknown>): Prepared | null {
  const compiled = command.compiled.sqlite
  if (compiled === null) return null
  const statement = database.prepare(compiled.text)
  // Lists are faster than objects; the names of their columns are looked up once.
  statement.setReturnArrays(true)
  const columns = statement.columns().map(({ name }) => name)
  const read = 'shape' in command ? createReader(command, columns) : () => undefined
  return {
    statement,
    place: (values) => placeValues(command.name, compiled, values, toInput),
    read: (row) => read(row as readonly Stored[]),
  }
}

function toInput(value: Value): SQLInputValue {
  if (typeof value === 'boolean') return Number(value)
  if (value instanceof Date) return value.getTime()
  return Array.isArray(value) ? JSON.stringify(value) : (value as SQLInputValue)
}
