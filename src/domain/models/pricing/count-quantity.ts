/**
 * How many there are of what a price counts. A number that the input states counts as it is; one that the input leaves to the
 * provider lies between two bounds until the answer is there. What cannot be read never counts as zero.
 */
import { findLeaves } from '../catalog/json-path.ts'
import type { Limit, Quantity } from './price-rule.ts'

/** null: the input leaves it to the provider. */
export function countStated(quantity: Quantity, input: unknown): number | null {
  const found = findValues(input, quantity.path)
  const counts = (found.length === 0 ? [quantity.fallback] : found).map(READ[quantity.measure])
  if (counts.includes(null)) return null
  const sum = counts.reduce<number>((total, count) => total + (count ?? 0), 0)
  if (quantity.measure !== 'number') return Math.max(sum, quantity.min)
  return sum > 0 || quantity.min === 0 ? sum : null
}

/** The most that the provider may make of it with this input; null: nobody can say. */
export function mostOf({ min, max, limits }: Quantity, input: unknown): number | null {
  if (max === null) return null
  return Math.max(min, Math.min(max, ...limits.map((limit) => limitOf(limit, input))))
}

interface Told {
  readonly count: number
  /** Whether the answer said so; else it is the rule's own default. */
  readonly isTold: boolean
}

/** The number that the answer tells, brought within the bounds. */
export function countTold(quantity: Quantity, most: number | null, documentOf: DocumentOf): Told {
  const field = quantity.from === 'input' ? quantity.actual : { from: quantity.from, path: quantity.path }
  const found = field === null ? [] : findValues(documentOf(field.from), field.path)
  const counts = found.map(READ[quantity.measure]).filter((count) => count !== null)
  const sum = counts.reduce((total, count) => total + count, 0)
  // A provider that made something from an open input made more than nothing.
  const isTold = counts.length > 0 && (sum > 0 || quantity.from !== 'input')
  return { count: clamp(isTold ? sum : toDefault(quantity, most), quantity.min, most), isTold }
}

export type DocumentOf = (from: 'output' | 'usage') => unknown

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
