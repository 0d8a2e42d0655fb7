/**
 * The `price` part of a model's file. Amounts are US dollars as texts, so that they are exact:
 *
 *   {"kind": "free"}
 *   {"parts": [{"unit": "image", "usd": "0.04", "times": [{"input": "n", "fallback": 1}]}]}
 *   {"parts": [{"unit": "second", "by": [{"input": "resolution", "fallback": "720p"}], "rates": {"720p": "0.05", "*": "0.1"},
 *               "times": [{"input": "duration", "fallback": 5}]}]}
 *   {"parts": [{"unit": "second", "usd": "0.08", "times": [{"input": "duration", "fallback": 5, "min": 4, "max": 12,
 *               "actual": {"output": "duration"}}]}]}  open where the input says "auto" or -1: the answer tells
 *   {"parts": [{"unit": "token", "usd": "2.50", "per": 1000000, "times": [{"usage": "output_tokens", "max": 4096,
 *               "limits": [{"input": "max_tokens"}]}]}]}
 *   {"kind": "reported", "hold_usd": "0.50"}            the provider's own figure
 *   {"kind": "unknown", "reason": "…", "hold_usd": "0.50"}
 *
 * A rule by which a call could cost nothing is refused, and so is one that no hold could cover.
 */
import { readUsd } from '../../../../lib/text/usd.ts'
import type { FieldReader } from '../catalog/field-reader.ts'
import {
  type AnswerField,
  type Json,
  type Limit,
  PRICE_UNITS,
  type PricePart,
  type PriceRule,
  type Quantity,
  type Rate,
  type ValueAt,
} from '../catalog/model.ts'
import { leastOfPart } from './pricing.ts'

const KINDS = ['sum', 'free', 'reported', 'unknown'] as const
const SOURCES = ['input', 'output', 'usage'] as const
const MEASURES = ['number', 'characters', 'items'] as const
const ANSWERS = ['output', 'usage'] as const
const MAX_PER = 1_000_000_000
const MAX_QUANTITY = 1_000_000_000

/** `canRun`: a model that cannot be run yet, or no longer, may have a price that nobody knows. */
export function readPriceRule(price: FieldReader, { canRun }: { readonly canRun: boolean }): PriceRule {
  const kind = price.choice('kind', KINDS, 'sum')
  const rule = READ[kind](price)
  if (canRun && 'holdMicros' in rule && rule.holdMicros === 0)
    price.problem('hold_usd', 'must be more than nothing: it is what such a call costs at most')
  price.refuseOthers()
  return rule
}

const READ: Readonly<Record<(typeof KINDS)[number], (price: FieldReader) => PriceRule>> = {
  free: () => ({ kind: 'free' }),
  reported: (price) => ({ kind: 'reported', holdMicros: readAmount(price, 'hold_usd') }),
  unknown: (price) => ({
    kind: 'unknown',
    reason: price.text('reason', { fallback: '' }),
    holdMicros: readAmount(price, 'hold_usd'),
  }),
  sum(price) {
    const parts = price.records('parts').map(readPart)
    if (parts.length === 0)
      price.problem('parts', 'must hold at least one part; a model without a price is {"kind": "free"}')
    else if (parts.every((part) => leastOfPart(part) === 0))
      price.problem('parts', `let a call cost nothing: ${CAN_BE_NOTHING}; a model without a price is {"kind": "free"}`)
    return { kind: 'sum', parts }
  },
}

const CAN_BE_NOTHING = 'every part has a rate of 0, or a quantity that may be 0 (give it a `min`)'

function readAmount(price: FieldReader, field: string): number {
  const micros = readUsd(price.text(field, { fallback: '0' }))
  if (micros === null || micros < 0) price.problem(field, 'must be an amount of US dollars such as "0.04"')
  return micros ?? 0
}

function readPart(part: FieldReader): PricePart {
  const read = {
    unit: part.choice('unit', PRICE_UNITS, 'request'),
    rate: readRate(part),
    per: part.number('per', { min: 1, max: MAX_PER, fallback: 1 }),
    times: part.records('times').map(readQuantity),
  }
  part.refuseOthers()
  return read
}

function readRate(part: FieldReader): Rate {
  if (part.has('usd')) return { kind: 'fixed', micros: readAmount(part, 'usd') }
  const by = part.records('by').map(readWholeValue)
  if (new Set(by.map(({ from }) => from === 'input')).size > 1)
    part.problem('by', 'must read either the input or the answer')
  const rates = Object.entries(part.object('rates') ?? {})
  if (by.length === 0 || rates.length === 0) part.problem('usd', 'is missing; give it, or `by` and `rates`')
  const micros = rates.map(([values, amount]) => [values, readRateAmount(part, values, amount)] as const)
  return { kind: 'table', by, micros: new Map(micros) }
}

function readRateAmount(part: FieldReader, values: string, amount: Json): number {
  const micros = typeof amount === 'string' ? readUsd(amount) : null
  if (micros === null || micros < 0) part.problem(`rates.${values}`, 'must be an amount of US dollars such as "0.04"')
  return micros ?? 0
}

function readWholeValue(value: FieldReader): ValueAt {
  const read = readValueAt(value)
  value.refuseOthers()
  return read
}

function readValueAt(value: FieldReader): ValueAt {
  const named = SOURCES.filter((source) => value.has(source))
  const [from = 'input'] = named
  if (named.length !== 1) value.problem('input', `must be given, or one of ${SOURCES.join(', ')} instead`)
  return { from, path: value.path(from), fallback: readFallback(value) }
}

function readFallback(value: FieldReader): ValueAt['fallback'] {
  const fallback = value.value('fallback') ?? null
  if (fallback === null || typeof fallback !== 'object') return fallback
  value.problem('fallback', 'must be a text, a number, true or false')
  return null
}

function readQuantity(value: FieldReader): Quantity {
  const at = readValueAt(value)
  const measure = value.choice('measure', MEASURES, 'number')
  // A default that may be nothing says that the quantity may.
  const leastByDefault = typeof at.fallback === 'number' ? Math.min(1, Math.max(0, at.fallback)) : 1
  const min = value.number('min', { min: 0, max: MAX_QUANTITY, fallback: leastByDefault })
  const max = value.optionalNumber('max', { min: 0, max: MAX_QUANTITY })
  const actual = readActual(value)
  const limits = value.records('limits').map(readLimit)
  if (at.from !== 'input' && actual !== null) value.problem('actual', 'is for quantities of the input')
  if (at.from !== 'input' && max === null) value.problem('max', 'is missing: a hold must cover the call')
  if (max === null && (actual !== null || limits.length > 0)) value.problem('max', 'is missing')
  if (max !== null && max < min) value.problem('max', `must be at least ${min}`)
  checkFallback(value, at.fallback, { min, max, measure })
  value.refuseOthers()
  return { ...at, measure, min, max, actual, limits }
}

function checkFallback(
  value: FieldReader,
  fallback: ValueAt['fallback'],
  { min, max, measure }: Pick<Quantity, 'min' | 'max' | 'measure'>,
): void {
  if (fallback === null) return
  const count = typeof fallback === 'string' ? Number.parseFloat(fallback) : fallback
  if (typeof count !== 'number' || !Number.isFinite(count))
    value.problem('fallback', `must be a number: so many are counted where the ${measure} is not known`)
  else if (count < min || (max !== null && count > max))
    value.problem('fallback', `must lie between min (${min}) and max (${max ?? 'none'})`)
}

function readActual(value: FieldReader): AnswerField | null {
  if (!value.has('actual')) return null
  const actual = value.record('actual')
  const named = ANSWERS.filter((source) => actual.has(source))
  const [from = 'output'] = named
  if (named.length !== 1) actual.problem('output', 'must be given, or usage instead')
  const field = { from, path: actual.path(from) }
  actual.refuseOthers()
  return field
}

function readLimit(limit: FieldReader): Limit {
  const values = limit.object('values')
  const read = {
    path: limit.path('input'),
    fallback: readFallback(limit),
    values: values === null ? null : new Map(Object.entries(values).map(([text, most]) => [text, toMost(text, most)])),
  }
  limit.refuseOthers()
  return read

  function toMost(text: string, most: Json): number {
    if (typeof most === 'number' && most > 0) return most
    limit.problem(`values.${text}`, 'must be a number above 0')
    return 1
  }
}
