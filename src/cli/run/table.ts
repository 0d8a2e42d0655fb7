/** A table as spreadsheets write it: values between commas, quoted where they hold commas, quotes or line breaks. */
import { CommandError, EXIT } from '../terminal.ts'

interface Table {
  /** The first line. */
  readonly names: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

const MAX_ROWS = 1000
// One value and what ends it: a comma, a line break, or the end of the text.
const VALUE = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/y

export function readTable(text: string, file: string): Table {
  const refuse = (problem: string) => new CommandError(`--batch ${file}: ${problem}`, EXIT.usage)
  const plain = text.replace(/^\ufeff/, '').replace(/(?:\r?\n)+$/, '')
  const lines: string[][] = [[]]
  VALUE.lastIndex = 0
  for (;;) {
    const found = VALUE.exec(plain)
    if (found === null)
      throw refuse(`line ${lines.length} cannot be read; a value with quotes in it is quoted as a whole`)
    const [, quoted, bare, end] = found
    lines.at(-1)?.push(quoted === undefined ? (bare ?? '') : quoted.replaceAll('""', '"'))
    if (end === '') break
    if (end !== ',') lines.push([])
  }
  const [names = [], ...rows] = lines
  if (rows.length === 0 || rows.length > MAX_ROWS) throw refuse(`must have a line of names and 1 to ${MAX_ROWS} rows`)
  const odd = rows.findIndex((row) => row.length !== names.length)
  if (odd !== -1) throw refuse(`row ${odd + 1} has ${rows[odd]?.length} values for ${names.length} names`)
  return { names, rows }
}
