/**
 * Python's `str.format` with named values: `{a}`, `{a[0]}`, `{a!r:>10}`, `{a:{b}}`, `{{`. Attributes are those that make
 * sense on the values of a graph: parts of a number, the shape of a tensor.
 */
import { pythonReprText } from '../../../lib/python/text.ts'
import { NodeError } from '../../node/node-error.ts'
import { Tensor } from '../../tensor/tensor.ts'
import { isPyList, type PyValue, pyRepr, pyStr, pyTypeName } from '../python-value.ts'
import { refuseLongText } from '../text-limit.ts'
import { formatValue } from './format-value.ts'

type NamedValues = Readonly<Record<string, PyValue>>

const MAX_NESTING = 2

/** `checkpoint`: called between the parts; throws to stop. */
export function formatTemplate(template: string, values: NamedValues, checkpoint: () => void): string {
  return render(template, { values, nesting: MAX_NESTING, checkpoint })
}

interface Rendering {
  readonly values: NamedValues
  readonly nesting: number
  checkpoint(): void
}

function problem(message: string): NodeError {
  return new NodeError('ValueError', message)
}

function render(template: string, rendering: Rendering): string {
  if (rendering.nesting === 0) throw problem('Max string recursion exceeded')
  const parts: string[] = []
  let length = 0
  for (let at = 0; at < template.length; ) {
    rendering.checkpoint()
    const { text, end } = readPart(template, at, rendering)
    length += text.length
    refuseLongText(length)
    parts.push(text)
    at = end
  }
  return parts.join('')
}

const BRACE = /[{}]/g

/** Plain text up to a brace, an escaped brace, or a field. */
function readPart(template: string, at: number, rendering: Rendering): { text: string; end: number } {
  BRACE.lastIndex = at
  const brace = BRACE.exec(template)?.index ?? template.length
  if (brace > at) return { text: template.slice(at, brace), end: brace }
  const mark = template[at]
  if (template[at + 1] === mark) return { text: mark, end: at + 2 }
  if (mark === '}') throw problem("Single '}' encountered in format string")
  if (at + 1 === template.length) throw problem("Single '{' encountered in format string")
  const { name, conversion, spec, end } = readField(template, at + 1)
  const value = convert(lookUp(name, rendering.values), conversion)
  const isNested = spec.includes('{')
  const filled = isNested ? render(spec, { ...rendering, nesting: rendering.nesting - 1 }) : spec
  return { text: formatValue(value, filled), end }
}

interface Field {
  readonly name: string
  readonly conversion: string | null
  readonly spec: string
  /** Behind the closing brace. */
  readonly end: number
}

function readField(template: string, start: number): Field {
  const nameEnd = findNameEnd(template, start)
  const name = template.slice(start, nameEnd)
  if (template[nameEnd] === '}') return { name, conversion: null, spec: '', end: nameEnd + 1 }
  if (template[nameEnd] === ':') return { name, conversion: null, ...readSpec(template, nameEnd + 1) }
  const [conversion] = template.slice(nameEnd + 1, nameEnd + 3)
  if (conversion === undefined) throw problem('end of string while looking for conversion specifier')
  const after = nameEnd + 1 + conversion.length
  if (template[after] === '}') return { name, conversion, spec: '', end: after + 1 }
  if (after >= template.length) throw problem("unmatched '{' in format spec")
  if (template[after] !== ':') throw problem("expected ':' after conversion specifier")
  return { name, conversion, ...readSpec(template, after + 1) }
}

/** A name ends at a colon, an exclamation mark or the closing brace, unless these stand in brackets. */
function findNameEnd(template: string, start: number): number {
  let isInBrackets = false
  for (let at = start; at < template.length; at += 1) {
    const character = template[at]
    if (character === '[') isInBrackets = true
    else if (character === ']') isInBrackets = false
    else if (isInBrackets) continue
    else if (character === '{') throw problem("unexpected '{' in field name")
    else if (character === '}' || character === ':' || character === '!') return at
  }
  throw problem("expected '}' before end of string")
}

function readSpec(template: string, start: number): { spec: string; end: number } {
  let depth = 1
  for (let at = start; at < template.length; at += 1) {
    if (template[at] === '{') depth += 1
    else if (template[at] === '}') depth -= 1
    if (depth === 0) return { spec: template.slice(start, at), end: at + 1 }
  }
  throw problem("unmatched '{' in format spec")
}

const NON_ASCII = /[^\0-\x7f]/gu

function toAscii(text: string): string {
  return text.replace(NON_ASCII, (character) => {
    const code = character.codePointAt(0) ?? 0
    if (code < 0x100) return `\\x${code.toString(16)}`
    return code < 0x10000 ? `\\u${code.toString(16).padStart(4, '0')}` : `\\U${code.toString(16).padStart(8, '0')}`
  })
}

function convert(value: PyValue, conversion: string | null): PyValue {
  if (conversion === null) return value
  if (conversion === 's') return pyStr(value)
  if (conversion === 'r') return pyRepr(value)
  if (conversion === 'a') return toAscii(pyRepr(value))
  throw problem(`Unknown conversion specifier ${conversion}`)
}

const FIRST_NAME = /^[^.[]*/

function lookUp(name: string, values: NamedValues): PyValue {
  const first = FIRST_NAME.exec(name)?.[0] ?? ''
  if (/^\d*$/.test(first)) {
    // There are named values only.
    throw new NodeError('IndexError', `Replacement index ${Number(first)} out of range for positional args tuple`)
  }
  if (!Object.hasOwn(values, first)) throw new NodeError('KeyError', pythonReprText(first))
  return follow(values[first], name.slice(first.length))
}

const ACCESS = /^(?:\.([^.[]*)|\[([^\]]*)(\])?)/

/** `.attribute` and `[index]`, as many as there are. */
function follow(start: PyValue, path: string): PyValue {
  let value = start
  for (let rest = path; rest !== ''; ) {
    const match = ACCESS.exec(rest)
    if (match === null) throw problem("Only '.' or '[' may follow ']' in format field specifier")
    const [whole, attribute, index, closing] = match
    if (attribute === '' || (index === '' && closing !== undefined)) throw problem('Empty attribute in format string')
    if (index !== undefined && closing === undefined) throw problem("Missing ']' in format string")
    value = attribute === undefined ? itemOf(value, index) : attributeOf(value, attribute)
    rest = rest.slice(whole.length)
  }
  return value
}

function itemOf(value: PyValue, index: string): PyValue {
  const isNumber = /^\d+$/.test(index)
  if (value instanceof Map) {
    // Keys are texts, so a number is never one of them.
    if (isNumber || !value.has(index)) throw new NodeError('KeyError', isNumber ? index : pythonReprText(index))
    return value.get(index) as PyValue
  }
  const typeName = pyTypeName(value)
  const items = typeof value === 'string' ? Array.from(value) : isPyList(value) ? value : null
  if (items === null) throw new NodeError('TypeError', `'${typeName}' object is not subscriptable`)
  const kind = typeName === 'str' ? 'string' : typeName
  if (!isNumber)
    throw new NodeError(
      'TypeError',
      `${kind} indices must be integers${kind === 'list' ? ' or slices' : ''}, not ${kind === 'list' ? 'str' : "'str'"}`,
    )
  const item = items[Number(index)]
  if (item === undefined) throw new NodeError('IndexError', `${kind} index out of range`)
  return item
}

function attributeOf(value: PyValue, name: string): PyValue {
  const number = typeof value === 'boolean' ? BigInt(value) : value
  if (typeof number === 'bigint' || typeof number === 'number') {
    if (name === 'real') return number
    if (name === 'imag') return typeof number === 'bigint' ? 0n : 0
    if (typeof number === 'bigint' && name === 'numerator') return number
    if (typeof number === 'bigint' && name === 'denominator') return 1n
  }
  if (value instanceof Tensor && name === 'shape') return value.shape.map(BigInt)
  throw new NodeError('AttributeError', `'${pyTypeName(value)}' object has no attribute '${name}'`)
}
