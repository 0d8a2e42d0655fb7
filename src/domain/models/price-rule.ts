/**
 * What a call costs, as data: a sum of parts, each a rate times quantities. Rates and quantities come from the input, from
 * the result or from the usage that the provider reports. A rule that needs only the input gives an exact price beforehand.
 */
import type { JsonPath } from './json-path.ts'

export const PRICE_UNITS = [
  'request',
  'image',
  'second',
  'minute',
  'token',
  'character',
  'megapixel',
  'credit',
] as const
export type PriceUnit = (typeof PRICE_UNITS)[number]

export type ValueSource = 'input' | 'output' | 'usage'

/** `fallback` where there is no value at the path. */
export interface ValueAt {
  readonly from: ValueSource
  readonly path: JsonPath
  readonly fallback: string | number | boolean | null
}

/** How many. `measure` says what of the value counts. */
export interface Quantity extends ValueAt {
  readonly measure: 'number' | 'characters' | 'items'
  /** The most it can be, for a hold before the result is known; null: nobody can say. */
  readonly max: number | null
}

/** One rate, or one per value of a field. Rates are millionths of a US dollar and may be fractions of one. */
export type Rate =
  | { readonly kind: 'fixed'; readonly micros: number }
  | {
      readonly kind: 'table'
      readonly by: readonly ValueAt[]
      /** Keyed by the values joined with `|`; `*` for everything else. */
      readonly micros: ReadonlyMap<string, number>
    }

export interface PricePart {
  readonly unit: PriceUnit
  readonly rate: Rate
  /** The rate is for so many of the unit: 1,000,000 for a price per million tokens. */
  readonly per: number
  /** Multiplied with each other; none: once. */
  readonly times: readonly Quantity[]
}

export type PriceRule =
  | { readonly kind: 'free' }
  | { readonly kind: 'sum'; readonly parts: readonly PricePart[] }
  /** The provider's own figure is charged. `holdMicros` is set aside meanwhile. */
  | { readonly kind: 'reported'; readonly holdMicros: number }
  | { readonly kind: 'unknown'; readonly reason: string; readonly holdMicros: number }
