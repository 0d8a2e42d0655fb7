/** Statements by name: each connection prepares a statement once. Those with a shape give rows by the names of its fields. */
import type { ClientBase } from 'pg'
import {
  type Command,
  createReader,
  listStatements as listShared,
  placeValues,
  type Query,
  type Value,
  type Values,
} from '../../statements/statement.ts'
import type { Stored } from '../../tables/table.ts'
import { toText } from './texts.ts'

export interface Statement<Row extends readonly unknown[] = readonly unknown[]> {
  readonly name: string
  readonly text: string
  /** The type of its rows; never there at run time. */
  readonly row?: Row
}

/** Whatever runs statements: an open transaction, or a pool where each statement is a transaction of its own. */
export interface Queryable {
  all<Row>(statement: Query<Row>, values?: Values): Promise<Row[]>
  all<Row extends readonly unknown[]>(statement: Statement<Row>, values?: readonly unknown[]): Promise<Row[]>
  /** The first row, or undefined. */
  get<Row>(statement: Query<Row>, values?: Values): Promise<Row | undefined>
  get<Row extends readonly unknown[]>(statement: Statement<Row>, values?: readonly unknown[]): Promise<Row | undefined>
  /** How many rows it changed. */
  run(statement: Command, values?: Values): Promise<number>
  run(statement: Statement, values?: readonly unknown[]): Promise<number>
}

const statements = new Map<string, Statement>()

/** Made once, when its module is loaded. The name is unique in the program, such as `jobs.find`. */
export function statement<Row extends readonly unknown[]>(name: string, text: string): Statement<Row> {
  if (statements.has(name)) throw new Error(`There are two statements with the name ${name}.`)
  statements.set(name, { name, text })
  return { name, text }
}

/** Every statement of the modules that are loaded. */
export function listStatements(): readonly Statement[] {
  const shared = listShared().flatMap(({ name, compiled: { postgres } }) =>
    postgres === null ? [] : [{ name, text: postgres.text }],
  )
  return [...statements.values(), ...shared]
}

type AnyStatement = Command | Query<unknown> | Pick<Statement, 'name' | 'text'>
type AnyValues = Values | readonly unknown[]

interface Answer {
  readonly rows: readonly unknown[][]
  readonly rowCount: number | null
  readonly fields: readonly { readonly name: string }[]
}

const NOTHING: Answer = { rows: [], rowCount: 0, fields: [] }

export function onClient(client: Pick<ClientBase, 'query'>): Queryable {
  async function ask(asked: AnyStatement, values: AnyValues = []): Promise<Answer> {
    const { name } = asked
    if ('text' in asked) {
      const given = values as readonly unknown[]
      return client.query<unknown[]>({ name, text: asked.text, values: given.map(toValue), rowMode: 'array' })
    }
    const compiled = asked.compiled.postgres
    if (compiled === null) return NOTHING
    const placed = placeValues(name, compiled, values as Values, toParameter)
    return client.query<unknown[]>({ name, text: compiled.text, values: placed, rowMode: 'array' })
  }

  async function all(asked: AnyStatement, values?: AnyValues): Promise<unknown[]> {
    const { rows, fields } = await ask(asked, values)
    return 'shape' in asked && rows.length > 0 ? rows.map(readerOf(asked, fields)) : [...rows]
  }

  return {
    all: all as Queryable['all'],
    get: (async (asked: AnyStatement, values?: AnyValues) => (await all(asked, values))[0]) as Queryable['get'],
    run: async (asked: AnyStatement, values?: AnyValues) => (await ask(asked, values)).rowCount ?? 0,
  }
}

const readers = new WeakMap<Query<unknown>, (row: unknown[]) => unknown>()

/** The columns of a statement are the same on every connection: it is looked up once where each of its fields stands. */
function readerOf(query: Query<unknown>, fields: Answer['fields']): (row: unknown[]) => unknown {
  const known = readers.get(query)
  if (known !== undefined) return known
  const read = createReader(
    query,
    fields.map(({ name }) => name),
  )
  const reader = (row: unknown[]) => read(row as Stored[])
  readers.set(query, reader)
  return reader
}

function toParameter(value: Value): unknown {
  return value instanceof Date ? value.getTime() : toValue(value)
}

/** A text that the server could not even compare, such as an id out of an address, is one that no row has. */
function toValue(value: unknown): unknown {
  if (typeof value === 'string') return toText(value)
  return Array.isArray(value) ? value.map(toValue) : value
}
