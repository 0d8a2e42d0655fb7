/** Formats answers for people: one pair per line, or a table. Pure. */

export function toPairs(pairs: readonly (readonly [name: string, value: unknown])[]): string {
  const width = Math.max(...pairs.map(([name]) => name.length))
  return pairs.map(([name, value]) => `${name.padEnd(width)}  ${toText(value)}`).join('\n')
}

/** Columns as wide as their widest cell; `empty` when there are no rows. */
export function toTable(
  headings: readonly string[],
  rows: readonly (readonly unknown[])[],
  { empty }: { readonly empty: string },
): string {
  if (rows.length === 0) return empty
  const cells = [headings, ...rows.map((row) => row.map(toText))]
  const widths = headings.map((_, column) => Math.max(...cells.map((row) => row[column].length)))
  return cells
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

function toText(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-'
  return Array.isArray(value) ? value.join(', ') || '-' : String(value)
}
