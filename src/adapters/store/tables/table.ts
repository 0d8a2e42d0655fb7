/**
 * How a table is described, once for both databases: its columns, what each holds, and how that is read and written. The types of
 * rows, the text of plain statements, the columns that a move carries and the check of the migrations follow from the description.
 *
 *   export const apiKey = table('api_key', ['id'], {
 *     id: text(),
 *     accountId: text(),                      // the column account_id: a name in snake case unless `named` says otherwise
 *     scopes: nullable(json<readonly string[]>()),
 *     createdAt: moment(),                    // a Date here, milliseconds in the database
 *   })
 *   type KeyRow = RowOf<typeof apiKey>        // { id: string; accountId: string; scopes: readonly string[] | null; createdAt: Date }
 *
 * `shape` and `pick` describe the rows of statements that select something else than a whole table.
 */
export type Dialect = 'sqlite' | 'postgres'

/** What a driver takes and gives; SQLite has no booleans. */
export type Stored = string | number | boolean | Uint8Array | null

export interface Column<Value> {
  readonly types: Readonly<Record<Dialect, string>>
  readonly isNullable: boolean
  /** The column's name where it is not the field's in snake case. */
  readonly name?: string
  /** The only database that has the column. */
  readonly only?: Dialect
  /** Why a move leaves it behind. */
  readonly staysFor?: string
  decode(stored: Stored): Value
  encode(value: Value): Stored
}

export type Columns = Readonly<Record<string, Column<unknown>>>

/** What the rows of a statement hold. */
export interface Shape<Fields extends Columns = Columns> {
  readonly fields: Fields
  /** Their columns, as a statement lists them. */
  readonly columns: string
}

export interface Table<Fields extends Columns = Columns> extends Shape<Fields> {
  readonly name: string
  /** The fields of its primary key. */
  readonly key: readonly string[]
  /** The only database that has the table. */
  readonly only?: Dialect
  /** Why a move leaves it behind. */
  readonly staysFor?: string
}

type ValueOf<Of> = Of extends { decode(stored: Stored): infer Value } ? Value : never
export type RowOf<Of extends Shape> = { readonly [Field in keyof Of['fields']]: ValueOf<Of['fields'][Field]> }

type TableOptions = Pick<Table, 'only' | 'staysFor'>

export function table<const Fields extends Columns>(
  name: string,
  key: readonly (keyof Fields & string)[],
  fields: Fields,
  options: TableOptions = {},
): Table<Fields> {
  return { name, key, ...shape(fields), ...options }
}

export function shape<const Fields extends Columns>(fields: Fields): Shape<Fields> {
  return { fields, columns: columnsOf(fields).join(', ') }
}

export function pick<Fields extends Columns, Name extends keyof Fields & string>(
  from: Shape<Fields>,
  ...names: readonly Name[]
): Shape<Pick<Fields, Name>> {
  return shape(Object.fromEntries(names.map((name) => [name, from.fields[name]])) as Pick<Fields, Name>)
}

export function omit<Fields extends Columns, Name extends keyof Fields & string>(
  from: Shape<Fields>,
  ...names: readonly Name[]
): Shape<Omit<Fields, Name>> {
  const kept = Object.entries(from.fields).filter(([field]) => !names.includes(field as Name))
  return shape<Columns>(Object.fromEntries(kept)) as Shape<Omit<Fields, Name>>
}

export function columnsOf(fields: Columns): string[] {
  return Object.entries(fields).map(([field, column]) => columnOf(field, column))
}

export function columnOf(field: string, { name }: Pick<Column<unknown>, 'name'>): string {
  return name ?? field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/** A record as the parameters of a statement, by the names of its fields. */
export function encode<Fields extends Columns>(
  { fields }: Shape<Fields>,
  record: Partial<RowOf<Shape<Fields>>>,
): Record<string, Stored> {
  const values: Record<string, Stored> = {}
  for (const [field, column] of Object.entries(fields)) {
    if (field in record) values[field] = column.encode((record as Record<string, unknown>)[field])
  }
  return values
}

const same = <Value extends Stored>(value: Stored) => value as Value

export function text<Value extends string = string>(postgres = 'text'): Column<Value> {
  return { types: { sqlite: 'TEXT', postgres }, isNullable: false, decode: same<Value>, encode: same }
}

export function uuid(): Column<string> {
  return text('uuid')
}

/** Whole numbers, of at most 53 bits. */
export function integer<Value extends number = number>(
  postgres: 'bigint' | 'integer' | 'smallint' = 'bigint',
): Column<Value> {
  // Sums of Postgres are of a type without bounds, which its driver gives as text.
  return {
    types: { sqlite: 'INTEGER', postgres },
    isNullable: false,
    decode: (stored) => Number(stored) as Value,
    encode: same,
  }
}

export function flag(postgres: 'smallint' | 'boolean' = 'smallint'): Column<boolean> {
  const decode = (stored: Stored) => stored === 1 || stored === true
  return { types: { sqlite: 'INTEGER', postgres }, isNullable: false, decode, encode: Number }
}

/** A point in time, in milliseconds. */
export function moment(): Column<Date> {
  return {
    ...integer(),
    decode: (stored) => new Date(stored as number),
    encode: (date) => date.getTime(),
  }
}

export function json<Value>(): Column<Value> {
  return {
    ...text(),
    decode: (stored) => JSON.parse(stored as string) as Value,
    encode: (value) => JSON.stringify(value),
  }
}

export function bytes(): Column<Uint8Array> {
  return {
    types: { sqlite: 'BLOB', postgres: 'bytea' },
    isNullable: false,
    // Bytes of their own: a part of what a connection received would keep all of it in memory.
    decode: (stored) => (stored instanceof Buffer ? new Uint8Array(stored) : (stored as Uint8Array)),
    encode: same,
  }
}

export function nullable<Value>(column: Column<Value>): Column<Value | null> {
  return {
    ...column,
    isNullable: true,
    decode: (stored) => (stored === null ? null : column.decode(stored)),
    encode: (value) => (value === null ? null : column.encode(value)),
  }
}

export function named<Value>(name: string, column: Column<Value>): Column<Value> {
  return { ...column, name }
}

/** A column that one of the databases has. */
export function only<Value>(dialect: Dialect, column: Column<Value>): Column<Value> {
  return { ...column, only: dialect }
}

/** A column that a move between stores leaves behind. */
export function stays<Value>(staysFor: string, column: Column<Value>): Column<Value> {
  return { ...column, staysFor }
}
