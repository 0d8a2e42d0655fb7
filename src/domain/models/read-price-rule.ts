/**
 * The `price` part of a model's file. Amounts are US dollars as texts, so that they are exact:
 *
 *   {"kind": "free"}
 *   {"parts": [{"unit": "image", "usd": "0.04", "times": [{"input": "n", "fallback": 1}]}]}
 *   {"parts": [{"unit": "second", "by": [{"input": "resolution", "fallback": "720p"}], "rates": {"720p": "0.05", "*": "0.1"},
 *               "times": [{"input": "duration", "fallback": 5}]}]}
 *   {"parts": [{"unit": "token", "usd": "2.50", "per": 1000000, "times": [{"usage": "output_tokens", "max": 4096}]}]}
 *   {"kind": "reported", "hold_usd": "0.50"}            the provider's own figure
 *   {"kind": "unknown", "reason": "…", "hold_usd": "0.50"}
 */
import { readUsd } from '../credits/micros.ts'
import type { FieldReader } from './field-reader.ts'
import type { Json } from './model.ts'
import { PRICE_UNITS, type PricePart, type PriceRule, type Quantity, type Rate, type ValueAt } from './price-rule.ts'

const KINDS = ['sum', 'free', 'reported', 'unknown'] as const
const SOURCES = ['input', 'output', 'usage'] as const
const MEASURES = ['number', 'characters', 'items'] as const
const MAX_PER = 1_000_000_000
const MAX_QUANTITY = 1_000_000_000

export function readPriceRule(price: FieldReader): PriceRule {
  const kind = price.choice('kind', KINDS, 'sum')
  const rule = READ[kind](price)
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
    return { kind: 'sum', parts }
  },
}

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
  const read = {
    ...readValueAt(value),
    measure: value.choice('measure', MEASURES, 'number'),
    max: value.optionalNumber('max', { min: 0, max: MAX_QUANTITY }),
  }
  value.refuseOthers()
  return read
}
