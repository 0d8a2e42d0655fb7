/** `format(value, spec)` for any value. */
import { NodeError } from '../../node/node-error.ts'
import { pyHead } from '../code-points.ts'
import { type PyValue, pyStr, pyTypeName } from '../python-value.ts'
import { formatFloat, formatInt } from './format-number.ts'
import { type FormatSpec, readFormatSpec, unknownType } from './format-spec.ts'
import { pad } from './number-layout.ts'

export function formatValue(value: PyValue, spec: string): string {
  if (spec === '') return pyStr(value)
  if (typeof value === 'string') return formatText(value, spec)
  if (typeof value === 'boolean') return formatInt(BigInt(value), spec, 'bool')
  if (typeof value === 'bigint') return formatInt(value, spec, 'int')
  if (typeof value === 'number') return formatFloat(value, spec)
  throw new NodeError('TypeError', `unsupported format string passed to ${pyTypeName(value)}.__format__`)
}

function formatText(text: string, specText: string): string {
  const spec = readFormatSpec(specText, { type: 's', align: '<', typeName: 'str' })
  if (spec.type !== 's') throw unknownType(spec.type, 'str')
  const refused = refusedForText(spec)
  if (refused !== null) throw new NodeError('ValueError', `${refused} not allowed in string format specifier`)
  return pad(spec.precision === null ? text : pyHead(text, spec.precision), spec)
}

function refusedForText({ sign, isZeroPlain, isAlternate, align }: FormatSpec): string | null {
  if (sign !== null) return sign === ' ' ? 'Space' : 'Sign'
  if (isZeroPlain) return 'Negative zero coercion (z)'
  if (isAlternate) return 'Alternate form (#)'
  return align === '=' ? "'=' alignment" : null
}
