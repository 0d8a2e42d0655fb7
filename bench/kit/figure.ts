/** One line of the table: a ratio or an amount measured in this run, and the bar that it is held against. */
export interface Figure {
  readonly name: string
  readonly measured: number
  readonly unit: string
  readonly bar: number
  readonly direction: 'at_least' | 'at_most'
  /** How the figure was measured, for readers of the JSON. */
  readonly detail: Readonly<Record<string, unknown>>
}

export function isMet(figure: Figure): boolean {
  return figure.direction === 'at_least' ? figure.measured >= figure.bar : figure.measured <= figure.bar
}

export function toRow(figure: Figure): string[] {
  const sign = figure.direction === 'at_least' ? '>=' : '<='
  return [
    figure.name,
    formatFigure(figure.measured, figure.unit),
    `${sign} ${formatFigure(figure.bar, figure.unit)}`,
    isMet(figure) ? 'met' : 'MISSED',
  ]
}

export function formatFigure(value: number, unit: string): string {
  if (unit === '%') return `${(value * 100).toFixed(0)} %`
  return `${value < 10 ? value.toFixed(2) : value.toFixed(0)} ${unit}`
}

export function toTable(rows: string[][], header = ['figure', 'measured', 'bar', '']): string {
  const all = [header, ...rows]
  const widths = header.map((_, column) => Math.max(...all.map((row) => row[column].length)))
  const line = (row: string[]) => `| ${row.map((cell, column) => cell.padEnd(widths[column])).join(' | ')} |`
  return [line(header), `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`, ...rows.map(line)].join('\n')
}
