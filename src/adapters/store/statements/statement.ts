/**
 * Statements, written once for both databases. Values are named in the text (`:accountId`) and given by name; rows are read by the
 * names of their columns, through the codecs of their shape. What the databases spell differently has a word in `Words`:
 *
 *   const FIND = query('keys.find', apiKey, selectFrom(apiKey, 'WHERE id = :id'))
 *   const MOVE = command('deployments.move', (words) => `UPDATE … WHERE id = :id AND ${words.isIn('state', ':from')}`)
 *
 * A statement that only one of them needs has `null` for the other, which then does nothing: `both({ sqlite: null, postgres: '…' })`.
 */
import {
  type Columns,
  columnOf,
  columnsOf,
  type Dialect,
  type RowOf,
  type Shape,
  type Stored,
  type Table,
} from '../tables/table.ts'

export type Value = Stored | Date | readonly (string | number | null)[]
export type Values = Readonly<Record<string, Value>>

/** A list of records as the value that `words.rows` reads: whole for SQLite, and by column for Postgres. */
export function toRows(
  name: string,
  records: readonly Readonly<Record<string, string | number | Date | null>>[],
): Values {
  const columns = Object.keys(records[0] ?? {})
  const plain = records.map((record) => {
    const row: Record<string, Stored> = {}
    for (const column of columns) {
      const value = record[column]
      row[column] = value instanceof Date ? value.getTime() : (value ?? null)
    }
    return row
  })
  const values: Record<string, unknown> = { [name]: plain }
  for (const column of columns) values[`${name}.${column}`] = plain.map((row) => row[column])
  return values as Values
}

/** A text with numbered places, and the names of the values that belong there. */
interface Compiled {
  readonly text: string
  readonly names: readonly string[]
}

/** The statement where some lists have one element each: that is the value of the place, and SQLite has no JSON to read. */
export interface CompiledAlone extends Compiled {
  /** The lists by their places. */
  readonly lists: ReadonlyMap<string, string>
}

interface CompiledForSqlite extends Compiled {
  readonly alone: CompiledAlone | null
}

export interface Command {
  /** Unique in the program, such as `jobs.find`; empty for one that is made for a single use and not kept prepared on a server. */
  readonly name: string
  /** null: nothing is to be done there. */
  readonly compiled: { readonly sqlite: CompiledForSqlite | null; readonly postgres: Compiled | null }
}

export interface Query<Row> extends Command {
  readonly shape: Shape
  /** The type of its rows; never there at run time. */
  readonly row?: Row
}

/** What the two databases spell differently. */
export interface Words {
  readonly dialect: Dialect
  /** The text for the one or the other. */
  either(sqlite: string, postgres: string): string
  /** `list` is an array. */
  isIn(expression: string, list: string): string
  /** A table of the records of a list that `toRows` gave, with these columns and types. */
  rows(list: string, columns: Readonly<Record<string, 'text' | 'bigint' | 'integer' | 'smallint' | 'uuid'>>): string
  /** The larger of two values, neither of them null. */
  greatest(one: string, other: string): string
  least(one: string, other: string): string
  /** Behind a SELECT: keeps its rows for this transaction. In SQLite the one writer has them all. */
  lock(strength: 'UPDATE' | 'NO KEY UPDATE' | 'KEY SHARE', of?: string): string
}

const SQLITE: Words = {
  dialect: 'sqlite',
  either: (sqlite) => sqlite,
  isIn: (expression, list) => `${expression} IN (SELECT value FROM json_each(${list}))`,
  rows: (list, columns) =>
    `(SELECT ${Object.keys(columns).map((name) => `value->>'${name}' AS ${name}`)} FROM json_each(${list}))`,
  greatest: (one, other) => `max(${one}, ${other})`,
  least: (one, other) => `min(${one}, ${other})`,
  lock: () => '',
}

/** Words of SQLite for lists of one element each. Puts into `lists` which those are, by their places. */
function aloneWords(lists: Map<string, string>): Words {
  return {
    ...SQLITE,
    isIn(expression, list) {
      lists.set(`${list.slice(1)}.only`, list.slice(1))
      return `${expression} = ${list}.only`
    },
    rows(list, columns) {
      const names = Object.keys(columns)
      for (const name of names) lists.set(`${list.slice(1)}.${name}`, `${list.slice(1)}.${name}`)
      return `(SELECT ${names.map((name) => `${list}.${name} AS ${name}`)})`
    },
  }
}

const POSTGRES: Words = {
  dialect: 'postgres',
  either: (_, postgres) => postgres,
  isIn: (expression, list) => `${expression} = ANY(${list})`,
  rows(list, columns) {
    const lists = Object.entries(columns).map(([name, type]) => `CAST(${list}.${name} AS ${type}[])`)
    return `(SELECT * FROM unnest(${lists.join(', ')}) AS r (${Object.keys(columns).join(', ')}))`
  },
  greatest: (one, other) => `greatest(${one}, ${other})`,
  least: (one, other) => `least(${one}, ${other})`,
  lock: (strength, of) => `FOR ${strength}${of === undefined ? '' : ` OF ${of}`}`,
}

/** One text, or what follows from the words of a database; null: nothing. */
type Text = string | ((words: Words) => string | null)

/** The text of each database, where they have little in common. */
export function both(texts: Readonly<Record<Dialect, string | null>>): Text {
  return ({ dialect }) => texts[dialect]
}

export function sqliteOnly(text: Text): Text {
  return (words) => (words.dialect === 'sqlite' ? write(text, words) : null)
}

export function postgresOnly(text: Text): Text {
  return (words) => (words.dialect === 'postgres' ? write(text, words) : null)
}

function write(text: Text, words: Words): string | null {
  return typeof text === 'string' ? text : text(words)
}

/** By their databases and names: a name may stand for one statement of each. */
const statements = new Map<string, Command>()

/** A statement without rows: it tells how many it changed. Made once, when its module is loaded. */
export function command(name: string, text: Text): Command {
  return register({ name, compiled: compileBoth(text) })
}

export function query<Fields extends Columns>(
  name: string,
  shape: Shape<Fields>,
  text: Text,
): Query<RowOf<Shape<Fields>>> {
  return register({ name, shape, compiled: compileBoth(text) })
}

function register<Made extends Command>(made: Made): Made {
  if (made.name === '') return made
  for (const [dialect, compiled] of Object.entries(made.compiled)) {
    if (compiled === null) continue
    const name = `${dialect} ${made.name}`
    if (statements.has(name)) throw new Error(`There are two statements with the name ${made.name}.`)
    statements.set(name, made)
  }
  return made
}

/** Every statement of the modules that are loaded. */
export function listStatements(): readonly Command[] {
  return [...new Set(statements.values())]
}

// Not a cast (`::`), and not inside a word such as 'job:%'.
const PLACE = /(?<![:\w]):([a-z][A-Za-z0-9]*(?:\.[A-Za-z_]+)?)/g

function compileBoth(text: Text): Command['compiled'] {
  const sqlite = compile(text, SQLITE)
  return { sqlite: sqlite && { ...sqlite, alone: compileAlone(text) }, postgres: compile(text, POSTGRES) }
}

function compileAlone(text: Text): CompiledAlone | null {
  const lists = new Map<string, string>()
  const compiled = compile(text, aloneWords(lists))
  return compiled === null || lists.size === 0 ? null : { ...compiled, lists }
}

function compile(text: Text, words: Words): Compiled | null {
  const written = write(text, words)
  if (written === null) return null
  const names: string[] = []
  const sign = words.dialect === 'sqlite' ? '?' : '$'
  const numbered = written.replace(PLACE, (_, name: string) => {
    if (!names.includes(name)) names.push(name)
    return `${sign}${names.indexOf(name) + 1}`
  })
  return { text: numbered, names }
}

/** The values of a statement in the order of their places. `toValue` makes of each what a driver takes. */
export function placeValues<To>(
  name: string,
  { names }: Compiled,
  values: Values,
  toValue: (value: Value) => To,
): To[] {
  return names.map((each) => {
    const value = values[each]
    if (value === undefined) throw new Error(`The statement ${name} was given no ${each}.`)
    return toValue(value)
  })
}

/** Reads rows that come as lists, whose columns have these names. */
export function createReader<Row>(
  { name, shape }: Query<Row>,
  columns: readonly string[],
): (row: readonly Stored[]) => Row {
  const fields = Object.entries(shape.fields).map(([field, column]) => {
    const index = columns.indexOf(columnOf(field, column))
    if (index === -1) throw new Error(`The statement ${name} selects no ${columnOf(field, column)}.`)
    return { field, index, decode: column.decode }
  })
  return (row) => {
    const read: Record<string, unknown> = {}
    for (const { field, index, decode } of fields) read[field] = decode(row[index])
    return read as Row
  }
}

/** `SELECT` of all columns of a shape, by default the table's own, from the table. */
export function selectFrom({ name, columns }: Table, rest: string, shape?: Shape): string {
  return `SELECT ${shape?.columns ?? columns} FROM ${name} ${rest}`
}

/** `INSERT` of a record: every field of the shape, by default the whole table, is a value with its name. */
export function insertInto<Fields extends Columns>(into: Table<Fields>, shape: Shape = into): string {
  const places = Object.keys(shape.fields).map((field) => `:${field}`)
  return `INSERT INTO ${into.name} (${shape.columns}) VALUES (${places.join(', ')})`
}

/** `INSERT` of a record that replaces the one with the same key. `replaced`: what an existing row takes of it. */
export function upsertInto(into: Table, shape: Shape = into, replaced: Shape = shape): string {
  const key = into.key.map((field) => columnOf(field, into.fields[field]))
  const sets = columnsOf(replaced.fields).flatMap((column) =>
    key.includes(column) ? [] : [`${column} = excluded.${column}`],
  )
  return `${insertInto(into, shape)} ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${sets.join(', ')}`
}
