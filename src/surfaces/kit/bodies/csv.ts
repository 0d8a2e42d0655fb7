/** A table as CSV (RFC 4180): fields between commas, quoted where they hold commas, quotes or line ends. */
import { invalidField } from '../../../domain/errors.ts'

/** Throws invalid_field. */
export function readCsv(text: string, maxRows: number): string[][] {
  const rows: string[][] = []
  let row: string[] = []
  const endRow = () => {
    // A line end behind the last row begins no other.
    if (row.length > 1 || row[0] !== '') rows.push(row)
    if (rows.length > maxRows) throw invalidField('items', `has more than ${maxRows - 1} rows in its table`)
    row = []
  }
  for (const field of fieldsOf(text)) {
    row.push(field.text)
    if (field.endsRow) endRow()
  }
  return rows
}

const PLAIN = /[^",\r\n]*/y
const QUOTED = /"((?:[^"]|"")*)"/y

function* fieldsOf(text: string): Generator<{ readonly text: string; readonly endsRow: boolean }> {
  let at = text.startsWith('\ufeff') ? 1 : 0
  for (;;) {
    const pattern = text[at] === '"' ? QUOTED : PLAIN
    pattern.lastIndex = at
    const found = pattern.exec(text)
    if (found === null) throw invalidField('items', 'has a quote in its table that is not closed')
    at = pattern.lastIndex
    const value = pattern === QUOTED ? (found[1] ?? '').replaceAll('""', '"') : found[0]
    const next = text[at]
    const isEnd = next === undefined || next === '\n' || next === '\r'
    if (!isEnd && next !== ',') throw invalidField('items', 'has text behind a closing quote in its table')
    yield { text: value, endsRow: isEnd }
    if (next === undefined) return
    at += text.startsWith('\r\n', at) ? 2 : 1
  }
}
