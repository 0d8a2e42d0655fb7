/** Runs the statements of both databases on SQLite. Each is prepared when it is first asked for. */
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import {
  type Command,
  type CompiledAlone,
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

/** A statement, and its form for lists of one element each. */
interface Forms {
  readonly usual: Prepared
  readonly alone: Prepared | null
  readonly lists: readonly string[]
}

export function openStatements(database: DatabaseSync): Statements {
  const known = new Map<Command, Forms | null>()

  function prepared(command: Command, values: Values): Prepared | null {
    let forms = known.get(command)
    if (forms === undefined) {
      forms = prepare(database, command)
      known.set(command, forms)
    }
    if (forms === null) return null
    const { usual, alone, lists } = forms
    return alone !== null && lists.every((name) => isAlone(values[name])) ? alone : usual
  }

  return {
    get<Row>(query: Query<Row>, values: Values = {}) {
      const found = prepared(query, values)
      const row = found?.statement.get(...found.place(values))
      return row === undefined ? undefined : (found?.read(row) as Row)
    },
    all<Row>(query: Query<Row>, values: Values = {}) {
      const found = prepared(query, values)
      return found === null ? [] : (found.statement.all(...found.place(values)).map(found.read) as Row[])
    },
    run(command, values = {}) {
      const found = prepared(command, values)
      return found === null ? 0 : Number(found.statement.run(...found.place(values)).changes)
    },
  }
}

function prepare(database: DatabaseSync, command: Command | Query<unknown>): Forms | null {
  const compiled = command.compiled.sqlite
  if (compiled === null) return null
  const { alone } = compiled
  const place = (values: Values) => placeValues(command.name, compiled, values, toInput)
  return {
    usual: toPrepared(database.prepare(compiled.text), command, place),
    alone:
      alone && toPrepared(database.prepare(alone.text), command, (values) => placeAlone(command.name, alone, values)),
    lists: [...(alone?.lists.values() ?? [])],
  }
}

function toPrepared(statement: StatementSync, command: Command | Query<unknown>, place: Prepared['place']): Prepared {
  // Lists are faster than objects; the names of their columns are looked up once.
  statement.setReturnArrays(true)
  const columns = statement.columns().map(({ name }) => name)
  const read = 'shape' in command ? createReader(command, columns) : () => undefined
  return { statement, place, read: (row) => read(row as readonly Stored[]) }
}

function placeAlone(name: string, { names, lists }: CompiledAlone, values: Values): SQLInputValue[] {
  return names.map((place) => {
    const list = lists.get(place)
    const value = values[list ?? place]
    if (value === undefined) throw new Error(`The statement ${name} was given no ${place}.`)
    return list === undefined ? toInput(value) : toElement(value)
  })
}

function isAlone(value: Value | undefined): boolean {
  return Array.isArray(value) && value.length === 1
}

/** As SQLite would read it from JSON, where 2 is an integer. */
function toElement(value: Value): SQLInputValue {
  const element = Array.isArray(value) ? value[0] : value
  return Number.isSafeInteger(element) ? BigInt(element) : element
}

function toInput(value: Value): SQLInputValue {
  if (typeof value === 'boolean') return Number(value)
  if (value instanceof Date) return value.getTime()
  return Array.isArray(value) ? JSON.stringify(value) : (value as SQLInputValue)
}
