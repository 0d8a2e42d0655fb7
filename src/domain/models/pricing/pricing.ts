/**
 * What a call will cost, and what it has cost. Amounts are whole millionths of a US dollar; fractions are rounded up once, at
 * the end, so that parts of a sum do not each lose a little. The least, the most and what is charged are the same product of
 * the same factors in the same order, so that a charge never leaves the range that was estimated and set aside before.
 */
import { MAX_MICROS, type Micros } from '../../../../lib/text/usd.ts'
import {
  findLeaves,
  type JsonPath,
  type JsonRecord,
  type Limit,
  needsAnswer,
  type PricePart,
  type PriceRule,
  type Quantity,
  type Rate,
  type ValueAt,
} from '../catalog/model.ts'

export type Estimate =
  | { readonly source: 'exact'; readonly micros: Micros }
  | { readonly source: 'estimated'; readonly minMicros: Micros; readonly maxMicros: Micros }
  | { readonly source: 'unknown'; readonly reason: string }

/** What the input decides of a price, per part of the rule: all that has to be kept of an input to price its call. */
export type Quote = readonly PartQuote[]

/** One number where the input decides all of its quantities; else with those that the answer decides. */
type PartQuote = number | { readonly factor: number; readonly open: readonly OpenCount[] }
/** `index`: of the quantity in its part; `most`: what it can be at most with this input. */
type OpenCount = readonly [index: number, most: number | null]

/** What is known of a finished call. */
export interface Consumption {
  /** The result, where it is a JSON document. */
  readonly output: unknown
  readonly usage: JsonRecord | null
  readonly costMicros: Micros | null
}

/** The least that anything costs which costs something. */
const LEAST: Micros = 1

export function estimatePrice(rule: PriceRule, input: JsonRecord): Estimate {
  if (rule.kind === 'free') return { source: 'exact', micros: 0 }
  if (rule.kind === 'unknown') return { source: 'unknown', reason: rule.reason }
  const { min, max } = rangeOf(rule, quoteFor(rule, input))
  if (max === null) return { source: 'unknown', reason: 'the input leaves open what the price depends on' }
  return min === max ? { source: 'exact', micros: min } : { source: 'estimated', minMicros: min, maxMicros: max }
}

/** What to set aside before the call: the most that the provider may make of it. */
export function holdFor(rule: PriceRule, input: JsonRecord): Micros {
  return rule.kind === 'free' ? 0 : (rangeOf(rule, quoteFor(rule, input)).max ?? MAX_MICROS)
}

/** What the call costs at least, whatever its input is: an account without so much cannot run the model at all. */
export function leastPrice(rule: PriceRule): Micros {
  if (rule.kind === 'free') return 0
  if (rule.kind !== 'sum') return rule.holdMicros
  return round(rule.parts.reduce((sum, part) => sum + leastOfPart(part), 0))
}

/** Zero where nothing keeps the part from costing nothing. */
export function leastOfPart({ rate, times, per }: PricePart): number {
  return times.reduce((product, { min }) => product * min, Math.min(...ratesOf(rate)) / per)
}

export function quoteFor(rule: PriceRule, input: JsonRecord): Quote {
  return rule.kind === 'sum' ? rule.parts.map((part) => quotePart(part, input)) : []
}

/** Where an input leaves to the provider what nothing bounds, so that no hold could cover it; empty where it does not. */
export function findUnbounded(rule: PriceRule, input: JsonRecord): readonly JsonPath[] {
  if (rule.kind !== 'sum') return []
  const counted = rule.parts.flatMap(({ times }) => times).filter(({ from, max }) => from === 'input' && max === null)
  return counted.filter((quantity) => countStated(quantity, input) === null).map(({ path }) => path)
}

/**
 * The provider's own figure where the rule asks for it; else the quote times what the answer says. What the answer does not
 * say is found in what the provider says it cost, within the range; and where it says nothing at all, in the rule's defaults.
 */
export function priceOf(rule: PriceRule, quote: Quote, call: Consumption): Micros {
  if (rule.kind === 'free') return 0
  if (rule.kind !== 'sum') return within(call.costMicros ?? rule.holdMicros, rangeOf(rule, quote))
  let isTold = true
  const documentOf: DocumentOf = (from) => (from === 'output' ? call.output : (call.usage ?? {}))
  const charge = totalOf(rule.parts, quote, {
    rate: (rate) => rateOf(rate, ({ from }) => (from === 'input' ? {} : documentOf(from))),
    count(quantity, most) {
      const told = countTold(quantity, most, documentOf)
      isTold &&= told.isTold
      return told.count
    },
  })
  return isTold || call.costMicros === null ? round(charge ?? 0) : within(call.costMicros, rangeOf(rule, quote))
}

/** The same for a call of which only the provider's own figure is known; null: it named none, and nothing is charged. */
export function capCost(rule: PriceRule, quote: Quote, costMicros: Micros | null): Micros | null {
  if (costMicros === null || costMicros <= 0 || rule.kind === 'free') return null
  return Math.min(costMicros, rangeOf(rule, quote).max ?? MAX_MICROS)
}

interface MicrosRange {
  readonly min: Micros
  /** null: nobody can say. */
  readonly max: Micros | null
}

function within(micros: Micros, { min, max }: MicrosRange): Micros {
  return Math.min(Math.max(micros, min), max ?? MAX_MICROS)
}

function rangeOf(rule: Exclude<PriceRule, { kind: 'free' }>, quote: Quote): MicrosRange {
  if (rule.kind !== 'sum') return { min: LEAST, max: Math.max(LEAST, rule.holdMicros) }
  const min = totalOf(rule.parts, quote, {
    rate: (rate) => Math.min(...ratesOf(rate)),
    count: ({ min }, most) => Math.min(min, most ?? min),
  })
  const max = totalOf(rule.parts, quote, { rate: (rate) => Math.max(...ratesOf(rate)), count: (_, most) => most })
  return { min: round(min ?? 0), max: max === null ? null : round(max) }
}

interface Reading {
  /** Of a rate that the answer decides. */
  rate(rate: Rate): number
  /** null: nobody can say. */
  count(quantity: Quantity, most: number | null): number | null
}

function totalOf(parts: readonly PricePart[], quote: Quote, read: Reading): number | null {
  let total = 0
  for (const [index, part] of parts.entries()) {
    const { factor, open } = toOpen(part, quote[index] ?? 0)
    let amount = needsAnswer(part.rate) ? factor * read.rate(part.rate) : factor
    for (const [at, most] of open) {
      const quantity = part.times[at]
      const count = quantity === undefined ? 1 : read.count(quantity, most)
      if (count === null) return null
      amount *= count
    }
    total += amount
  }
  return total
}

function quotePart(part: PricePart, input: JsonRecord): PartQuote {
  let factor = (needsAnswer(part.rate) ? 1 : rateOf(part.rate, () => input)) / part.per
  const open: OpenCount[] = []
  for (const [index, quantity] of part.times.entries()) {
    const count = quantity.from === 'input' ? countStated(quantity, input) : null
    if (count === null) open.push([index, mostOf(quantity, input)])
    else factor *= count
  }
  return open.length === 0 ? factor : { factor, open }
}

/** A lone number leaves open only what the rule itself asks of the answer. */
function toOpen(part: PricePart, quote: PartQuote): Exclude<PartQuote, number> {
  if (typeof quote !== 'number') return quote
  const open = part.times.flatMap(({ from, max }, index) => (from === 'input' ? [] : [[index, max] as const]))
  return { factor: quote, open }
}

function ratesOf(rate: Rate): readonly number[] {
  return rate.kind === 'fixed' ? [rate.micros] : [...rate.micros.values()]
}

function rateOf(rate: Rate, documentOf: (value: ValueAt) => unknown): number {
  if (rate.kind === 'fixed') return rate.micros
  const values = rate.by.map((value) => {
    const found = findLeaves(documentOf(value), value.path)[0]?.value
    // A list or an object is in no table.
    return typeof found === 'object' && found !== null ? '' : String(found ?? value.fallback ?? '')
  })
  // An unlisted value must never be free: it costs as much as the dearest.
  return rate.micros.get(values.join('|')) ?? rate.micros.get('*') ?? Math.max(0, ...rate.micros.values())
}

/** Of what costs something: never nothing, whatever the factors say. */
function round(micros: number): Micros {
  // A sum of fractions may end a hair above a whole number.
  const whole = Math.ceil(micros - 1e-6)
  return whole <= MAX_MICROS ? Math.max(LEAST, whole) : MAX_MICROS
}

// How many there are of what a price counts. A number that the input states counts as it is; one that the input leaves to the
// provider lies between two bounds until the answer is there. What cannot be read never counts as zero.

/** null: the input leaves it to the provider. */
function countStated(quantity: Quantity, input: unknown): number | null {
  const found = findValues(input, quantity.path)
  const counts = (found.length === 0 ? [quantity.fallback] : found).map(READ[quantity.measure])
  if (counts.includes(null)) return null
  const sum = counts.reduce<number>((total, count) => total + (count ?? 0), 0)
  if (quantity.measure !== 'number') return Math.max(sum, quantity.min)
  return sum > 0 || quantity.min === 0 ? sum : null
}

/** The most that the provider may make of it with this input; null: nobody can say. */
function mostOf({ min, max, limits }: Quantity, input: unknown): number | null {
  if (max === null) return null
  return Math.max(min, Math.min(max, ...limits.map((limit) => limitOf(limit, input))))
}

interface Told {
  readonly count: number
  /** Whether the answer said so; else it is the rule's own default. */
  readonly isTold: boolean
}

/** The number that the answer tells, brought within the bounds. */
function countTold(quantity: Quantity, most: number | null, documentOf: DocumentOf): Told {
  const field = quantity.from === 'input' ? quantity.actual : { from: quantity.from, path: quantity.path }
  const found = field === null ? [] : findValues(documentOf(field.from), field.path)
  const counts = found.map(READ[quantity.measure]).filter((count) => count !== null)
  const sum = counts.reduce((total, count) => total + count, 0)
  // A provider that made something from an open input made more than nothing.
  const isTold = counts.length > 0 && (sum > 0 || quantity.from !== 'input')
  return { count: clamp(isTold ? sum : toDefault(quantity, most), quantity.min, most), isTold }
}

type DocumentOf = (from: 'output' | 'usage') => unknown

function toDefault({ fallback, measure, from, min }: Quantity, most: number | null): number {
  const pinned = fallback === null ? null : READ[measure](fallback)
  // Without a default of its own an open number costs as much as it can.
  return pinned ?? (from === 'input' ? (most ?? min) : min)
}

function clamp(count: number, min: number, most: number | null): number {
  const atLeast = Math.max(count, min)
  return most === null ? atLeast : Math.min(atLeast, most)
}

function limitOf({ path, fallback, values }: Limit, input: unknown): number {
  const value = findValues(input, path)[0] ?? fallback
  const limit = values === null ? toCount(value) : (values.get(String(value)) ?? null)
  return limit === null || limit <= 0 ? Number.POSITIVE_INFINITY : limit
}

/** Null counts as left out: some callers write out what they do not say. */
function findValues(document: unknown, path: Quantity['path']): readonly unknown[] {
  return findLeaves(document, path)
    .map(({ value }) => value)
    .filter((value) => value !== null)
}

/** null: it cannot be read as a count. */
const READ: Readonly<Record<Quantity['measure'], (value: unknown) => number | null>> = {
  number: toCount,
  // By code points, as providers count: a surrogate pair is one character.
  characters: (value) => (typeof value === 'string' ? [...value].length : toCount(value)),
  items: (value) => (Array.isArray(value) ? value.length : toCount(value)),
}

/** Providers write numbers as texts too (`"5"`, `"5s"`). */
function toCount(value: unknown): number | null {
  const number = typeof value === 'string' ? Number.parseFloat(value) : value
  return typeof number === 'number' && Number.isFinite(number) && number >= 0 ? number : null
}
