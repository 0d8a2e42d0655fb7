/** A short table whose rows are all drawn, and the states of one that is asked for: on its way, empty, refused, there. */
import type { ComponentChildren } from 'preact'
import type { Resource } from '../../state/resource.ts'
import { Loaded, Skeleton } from '../state.tsx'

export interface PlainColumn<Row> {
  readonly label: string
  readonly cell: (row: Row) => ComponentChildren
  /** Figures stand at the right, so that their digits are below each other. */
  readonly isNumber?: boolean
  readonly className?: (row: Row) => string
}

interface PlainTableProps<Row> {
  readonly label: string
  readonly columns: readonly PlainColumn<Row>[]
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row) => string | number
  readonly className?: string
}

export function PlainTable<Row>({ label, columns, rows, keyOf, className = '' }: PlainTableProps<Row>) {
  return (
    <TableWrap label={label}>
      <table class={`plain-table ${className}`}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.label} scope="col" class={column.isNumber === true ? 'right' : ''}>
                {column.label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ label: name, cell, isNumber, className: classOf }) => (
                <td key={name} class={`${isNumber === true ? 'right number' : ''} ${classOf?.(row) ?? ''}`}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </TableWrap>
  )
}

interface LoadedTableProps<Value, Row> extends Omit<PlainTableProps<Row>, 'rows'> {
  readonly resource: Resource<Value>
  readonly rowsOf: (value: Value) => readonly Row[]
  /** What stands there instead of a table without rows. */
  readonly empty: ComponentChildren
  readonly skeletonRows?: number
}

export function LoadedTable<Value, Row>(props: LoadedTableProps<Value, Row>) {
  const { resource, rowsOf, empty, skeletonRows = 8, ...table } = props
  return (
    <Loaded resource={resource} skeleton={<Skeleton rows={skeletonRows} />}>
      {(value) => {
        const rows = rowsOf(value)
        return rows.length === 0 ? empty : <PlainTable {...table} rows={rows} />
      }}
    </Loaded>
  )
}

/** A table that may be wider than the screen: it scrolls by itself, by keys too. */
export function TableWrap({ label, children }: { readonly label: string; readonly children: ComponentChildren }) {
  return (
    <div class="table-wrap" role="group" aria-label={label} tabIndex={0}>
      {children}
    </div>
  )
}
