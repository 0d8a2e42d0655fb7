/** A value of JSON as a literal of a language, laid out as people write it: short lists and objects on one line. */

interface LiteralStyle {
  readonly words: { readonly true: string; readonly false: string; readonly null: string }
  readonly quote: "'" | '"'
  /** Names that are written without quotes. */
  readonly bareName: RegExp | null
  /** Between the braces of an object on one line. */
  readonly pad: ' ' | ''
  readonly step: string
  /** Behind the last member of what takes several lines. */
  readonly trailing: ',' | ''
}

export const TYPESCRIPT: LiteralStyle = {
  ...{ words: { true: 'true', false: 'false', null: 'null' }, quote: "'", bareName: /^[A-Za-z_$][\w$]*$/ },
  ...{ pad: ' ', step: '  ', trailing: ',' },
}
export const PYTHON: LiteralStyle = {
  ...{ words: { true: 'True', false: 'False', null: 'None' }, quote: '"', bareName: null },
  ...{ pad: '', step: '    ', trailing: ',' },
}
export const JSON_TEXT: LiteralStyle = {
  ...{ words: { true: 'true', false: 'false', null: 'null' }, quote: '"', bareName: null },
  ...{ pad: ' ', step: '  ', trailing: '' },
}

// With what stands before it on its line.
const LINE_LENGTH = 96

export function toLiteral(value: unknown, style: LiteralStyle, indent = ''): string {
  if (typeof value === 'string') return quote(value, style)
  if (value === null) return style.words.null
  if (typeof value === 'boolean') return style.words[`${value}`]
  if (typeof value !== 'object') return String(value)
  const short = onOneLine(value, style)
  if (indent.length + short.length <= LINE_LENGTH) return short
  const inner = indent + style.step
  const [open, close] = Array.isArray(value) ? '[]' : '{}'
  const members = Array.isArray(value)
    ? value.map((each) => toLiteral(each, style, inner))
    : Object.entries(value).map(([name, each]) => `${toName(name, style)}: ${toLiteral(each, style, inner)}`)
  return `${open}\n${members.map((member) => inner + member).join(',\n')}${style.trailing}\n${indent}${close}`
}

function onOneLine(value: object, style: LiteralStyle): string {
  if (Array.isArray(value)) return `[${value.map((each) => toInline(each, style)).join(', ')}]`
  const members = Object.entries(value).map(([name, each]) => `${toName(name, style)}: ${toInline(each, style)}`)
  return members.length === 0 ? '{}' : `{${style.pad}${members.join(', ')}${style.pad}}`
}

function toInline(value: unknown, style: LiteralStyle): string {
  return typeof value === 'object' && value !== null ? onOneLine(value, style) : toLiteral(value, style)
}

function toName(name: string, style: LiteralStyle): string {
  return style.bareName?.test(name) === true ? name : quote(name, style)
}

/** The escapes of JSON are those of both languages. */
function quote(text: string, { quote: mark }: LiteralStyle): string {
  const inner = JSON.stringify(text).slice(1, -1)
  return mark === '"' ? `"${inner}"` : `'${inner.replaceAll('\\"', '"').replaceAll("'", "\\'")}'`
}
