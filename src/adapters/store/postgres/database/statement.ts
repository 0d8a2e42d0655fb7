/** Statements by name: each connection prepares a statement once. Rows come as arrays, in the order of the columns. */
import type { ClientBase } from 'pg'
import { toText } from './texts.ts'

export interface Statement<Row extends readonly unknown[] = readonly unknown[]> {
  readonly name: string
  readonly text: string
  /** The type of its rows; never there at run time. */
  readonly row?: Row
}

/** Whatever runs statements: an open transaction, or a pool where each statement is a transaction of its own. */
export interface Queryable {
  all<Row extends readonly unknown[]>(statement: Statement<Row>, values?: readonly unknown[]): Promise<Row[]>
  /** The first row, or undefined. */
  get<Row extends readonly unknown[]>(statement: Statement<Row>, values?: readonly unknown[]): Promise<Row | undefined>
  /** How many rows it changed. */
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
  return [...statements.values()]
}

type AskedStatement = Pick<Statement, 'name' | 'text'>

export function onClient(client: Pick<ClientBase, 'query'>): Queryable {
  const ask = ({ name, text }: AskedStatement, values: readonly unknown[] = []) =>
    client.query<unknown[]>({ name, text, values: values.map(toValue), rowMode: 'array' })
  return {
    all: async <Row extends readonly unknown[]>(asked: Statement<Row>, values?: readonly unknown[]) =>
      (await ask(asked, values)).rows as unknown as Row[],
    get: async <Row extends readonly unknown[]>(asked: Statement<Row>, values?: readonly unknown[]) =>
      (await ask(asked, values)).rows[0] as unknown as Row | undefined,
    run: async (asked, values) => (await ask(asked, values)).rowCount ?? 0,
  }
}

/** A text that the server could not even compare, such as an id out of an address, is one that no row has. */
function toValue(value: unknown): unknown {
  if (typeof value === 'string') return toText(value)
  return Array.isArray(value) ? value.map(toValue) : value
}
