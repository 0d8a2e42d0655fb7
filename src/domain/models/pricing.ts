/**
 * What a call will cost, and what it has cost. Amounts are whole millionths of a US dollar; fractions are rounded up once, at
 * the end, so that parts of a sum do not each lose a little.
 */
import { MAX_MICROS, type Micros } from '../credits/micros.ts'
import { findLeaves } from './json-path.ts'
import type { JsonRecord } from './model.ts'
import type { PricePart, PriceRule, Quantity, Rate, ValueAt } from './price-rule.ts'

export type Estimate =
  | { readonly source: 'exact'; readonly micros: Micros }
  | { readonly source: 'estimated'; readonly minMicros: Micros; readonly maxMicros: Micros }
  | { readonly source: 'unknown'; readonly reason: string }

/** What the input decides of a price, one number per part of the rule: all that has to be kept of an input to price its call. */
export type Quote = readonly number[]

/** What is known of a finished call. */
export interface Consumption {
  /** The result, where it is a JSON document. */
  readonly output: unknown
  readonly usage: JsonRecord | null
  readonly costMicros: Micros | null
}

interface Range {
  readonly min: number
  /** null: nobody can say. */
  readonly max: number | null
}

const ONCE: Range = { min: 1, max: 1 }

export function estimatePrice(rule: PriceRule, input: JsonRecord): Estimate {
  if (rule.kind === 'free') return { source: 'exact', micros: 0 }
  if (rule.kind === 'unknown') return { source: 'unknown', reason: rule.reason }
  if (rule.kind === 'reported') return { source: 'unknown', reason: 'the provider states the price with its answer' }
  const ranges = rule.parts.map((part) => partRange(part, input))
  const min = round(ranges.reduce((sum, range) => sum + range.min, 0))
  if (ranges.some(({ max }) => max === null)) {
    return { source: 'unknown', reason: 'the price depends on the length of the answer' }
  }
  const max = round(ranges.reduce((sum, range) => sum + (range.max ?? 0), 0))
  return min === max ? { source: 'exact', micros: min } : { source: 'estimated', minMicros: min, maxMicros: max }
}

/** What to set aside before the call: the most it can cost, as far as anybody can say. */
export function holdFor(rule: PriceRule, input: JsonRecord): Micros {
  if (rule.kind === 'reported' || rule.kind === 'unknown') return rule.holdMicros
  const estimate = estimatePrice(rule, input)
  if (estimate.source === 'exact') return estimate.micros
  return estimate.source === 'estimated' ? estimate.maxMicros : leastPrice(rule, input)
}

/** What the call costs whatever its input is: an account without so much cannot run the model at all. */
export function leastPrice(rule: PriceRule, input: JsonRecord = {}): Micros {
  if (rule.kind === 'free') return 0
  if (rule.kind !== 'sum') return rule.holdMicros
  return round(rule.parts.reduce((sum, part) => sum + partRange(part, input).min, 0))
}

export function quoteFor(rule: PriceRule, input: JsonRecord): Quote {
  return rule.kind === 'sum' ? rule.parts.map((part) => inputFactor(part, input)) : []
}

/** The provider's own figure where the rule asks for it, else the quote times what the answer adds to it. */
export function priceOf(rule: PriceRule, quote: Quote, call: Consumption): Micros {
  if (rule.kind === 'free') return 0
  if (rule.kind !== 'sum') return call.costMicros ?? rule.holdMicros
  return round(rule.parts.reduce((sum, part, index) => sum + (quote[index] ?? 0) * answerFactor(part, call), 0))
}

function inputFactor({ rate, times, per }: PricePart, input: JsonRecord): number {
  const ownRate = needsAnswer(rate) ? 1 : rateOf(rate, () => input)
  return times.filter(isOfInput).reduce((product, quantity) => product * measure(quantity, input), ownRate / per)
}

function answerFactor({ rate, times }: PricePart, { output, usage }: Consumption): number {
  const documentOf = ({ from }: ValueAt) => (from === 'output' ? output : (usage ?? {}))
  const ownRate = needsAnswer(rate) ? rateOf(rate, documentOf) : 1
  return times
    .filter((quantity) => !isOfInput(quantity))
    .reduce((product, quantity) => product * measure(quantity, documentOf(quantity)), ownRate)
}

function isOfInput({ from }: ValueAt): boolean {
  return from === 'input'
}

function needsAnswer(rate: Rate): boolean {
  return rate.kind === 'table' && !rate.by.every(isOfInput)
}

function partRange(part: PricePart, input: JsonRecord): Range {
  const count = part.times.map((times) => quantityRange(times, input)).reduce(multiply, ONCE)
  const rate = needsAnswer(part.rate) ? tableRange(part.rate) : toRange(rateOf(part.rate, () => input))
  const { min, max } = multiply(count, rate)
  return { min: min / part.per, max: max === null ? null : max / part.per }
}

function toRange(value: number): Range {
  return { min: value, max: value }
}

function multiply(a: Range, b: Range): Range {
  return { min: a.min * b.min, max: a.max === null || b.max === null ? null : a.max * b.max }
}

function tableRange(rate: Rate): Range {
  const rates = rate.kind === 'table' ? [...rate.micros.values()] : [rate.micros]
  return { min: Math.min(...rates), max: Math.max(...rates) }
}

function quantityRange(quantity: Quantity, input: JsonRecord): Range {
  if (isOfInput(quantity)) return toRange(measure(quantity, input))
  const least = typeof quantity.fallback === 'number' ? quantity.fallback : 0
  return { min: Math.min(least, quantity.max ?? least), max: quantity.max }
}

function measure(quantity: Quantity, document: unknown): number {
  const values = findLeaves(document, quantity.path).map(({ value }) => value)
  const found = values.filter((value) => value !== null)
  const counted = (found.length === 0 ? [quantity.fallback] : found).map(MEASURE[quantity.measure])
  const sum = counted.reduce((total, count) => total + count, 0)
  return quantity.max === null ? sum : Math.min(sum, quantity.max)
}

const MEASURE: Readonly<Record<Quantity['measure'], (value: unknown) => number>> = {
  number: toCount,
  // By code points, as providers count: a surrogate pair is one character.
  characters: (value) => (typeof value === 'string' ? [...value].length : toCount(value)),
  items: (value) => (Array.isArray(value) ? value.length : toCount(value)),
}

/** Providers write numbers as texts too (`"5"`, `"5s"`); anything else counts as nothing. */
function toCount(value: unknown): number {
  const number = typeof value === 'string' ? Number.parseFloat(value) : value
  return typeof number === 'number' && Number.isFinite(number) && number > 0 ? number : 0
}

function rateOf(rate: Rate, documentOf: (value: ValueAt) => unknown): number {
  if (rate.kind === 'fixed') return rate.micros
  const values = rate.by.map((value) => {
    const found = findLeaves(documentOf(value), value.path)[0]?.value
    return String(found ?? value.fallback ?? '')
  })
  // An unlisted value must never be free: it costs as much as the dearest.
  return rate.micros.get(values.join('|')) ?? rate.micros.get('*') ?? Math.max(0, ...rate.micros.values())
}

function round(micros: number): Micros {
  // A sum of fractions may end a hair above a whole number.
  return Math.min(MAX_MICROS, Math.ceil(micros - 1e-6))
}
