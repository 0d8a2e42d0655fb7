/** Statements by name: each connection prepares a statement once. Those with a shape give rows by the names of its fields. */
import type { ClientBase } from 'pg'
import {
  type Command,
  createReader,
  placeValues,
  type Query,
  type Value,
  type Values,
} from '../../statements/statement.ts'

/** Whatever runs statements: an open transaction, or a pool where each statement is a transaction of its own. */
export interface Queryable {
  all<Row>(statement: Query<Row>, values?: Values): Promise<Row[]>
  /** The first row, or undefined. */
  get<Row>(statement: Query<Row>, values?: Values): Promise<Row | undefined>
  /** How many rows it changed. */
  run(statement: Command, values?: Values): Promise<number>
}

interface Answer {
  readonly rows: readonly unknown[][]
  readonly rowCount: number | null
  readonly fields: readonly { readonly name: string }[]
}

const NOTHING: Answer = { rows: [], rowCount: 0, fields: [] }

export function onClient(client: Pick<ClientBase, 'query'>): Queryable {
  async function ask({ name, compiled: { postgres: compiled } }: Command, values: Values = {}): Promise<Answer> {
    if (compiled === null) return NOTHING
    const placed = placeValues(name, compiled, values, toParameter)
    return client.query<unknown[]>({ name, text: compiled.text, values: placed, rowMode: 'array' })
  }

  async function all<Row>(asked: Query<Row>, values?: Values): Promise<Row[]> {
    const { rows, fields } = await ask(asked, values)
    return rows.length === 0 ? [] : rows.map(readerOf(asked, fields))
  }

  return {
    all,
    get: async (asked, values) => (await all(asked, values))[0],
    run: async (asked, values) => (await ask(asked, values)).rowCount ?? 0,
  }
}

const readers = new WeakMap<Command, (row: readonly unknown[]) => unknown>()

/** The columns of a statement are the same on every connection: it is looked up once where each of its fields stands. */
function readerOf<Row>(query: Query<Row>, fields: Answer['fields']): (row: readonly unknown[]) => Row {
  const columns = fields.map(({ name }) => name)
  const reader = readers.get(query) ?? (createReader(query, columns) as (row: readonly unknown[]) => unknown)
  readers.set(query, reader)
  return reader as (row: readonly unknown[]) => Row
}

/** A text that the server could not even compare, such as an id out of an address, is one that no row has. */
function toParameter(value: Value): unknown {
  if (value instanceof Date) return value.getTime()
  if (Array.isArray(value)) return value.map((each) => (typeof each === 'string' ? toText(each) : each))
  return typeof value === 'string' ? toText(value) : value
}

/** Postgres text cannot hold U+0000. Logs and messages of nodes may; it is shown as the symbol for it. */
function toText(text: string): string
function toText(text: string | null): string | null
function toText(text: string | null): string | null {
  return text?.includes('\u0000') ? text.replaceAll('\u0000', '\u2400') : text
}
