/**
 * What a call costs, as data: a sum of parts, each a rate times quantities. Rates and quantities come from the input, from
 * the result or from the usage that the provider reports. A rule that needs only the input gives an exact price beforehand;
 * where the provider decides, the rule says between which bounds.
 */
import { type JsonPath, writeJsonPath } from '../catalog/json-path.ts'

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
type PriceUnit = (typeof PRICE_UNITS)[number]

type ValueSource = 'input' | 'output' | 'usage'

/** A value of the answer. */
export interface AnswerField {
  readonly from: Exclude<ValueSource, 'input'>
  readonly path: JsonPath
}

/** `fallback` where there is no value at the path: for the input, what is sent to the provider in its place. */
export interface ValueAt {
  readonly from: ValueSource
  readonly path: JsonPath
  readonly fallback: string | number | boolean | null
}

/**
 * How many. `measure` says what of the value counts. An input may leave a number to the provider (`"auto"`, -1): it is then
 * open between `min` and `max`, and counts what the answer says at `actual`, else the fallback.
 */
export interface Quantity extends ValueAt {
  readonly measure: 'number' | 'characters' | 'items'
  /** The least that is counted where the input does not state a number. */
  readonly min: number
  /** The most it can be, for a hold before the result is known; null: only what the input states is taken. */
  readonly max: number | null
  readonly actual: AnswerField | null
  /** Fields of the input that keep the provider below `max`. */
  readonly limits: readonly Limit[]
}

/** The number at the path; with `values`, the number that they give for the text at the path. Anything else limits nothing. */
export interface Limit {
  readonly path: JsonPath
  readonly fallback: ValueAt['fallback']
  readonly values: ReadonlyMap<string, number> | null
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
  /** The provider's own figure is charged, up to `holdMicros`, which is set aside meanwhile. */
  | { readonly kind: 'reported'; readonly holdMicros: number }
  | { readonly kind: 'unknown'; readonly reason: string; readonly holdMicros: number }

/** Whether the rate depends on the answer. */
export function needsAnswer(rate: Rate): boolean {
  return rate.kind === 'table' && rate.by.some(({ from }) => from !== 'input')
}

/**
 * Where a price assumes another default for a field than the schema or the provider's rules do: all of them must agree.
 * `defaultAt` gives the default that they state; undefined: none.
 */
export function findOtherDefaults(rule: PriceRule, defaultAt: (path: JsonPath) => unknown): readonly string[] {
  return sourcesOf(rule).flatMap(({ from, path, fallback = null }) => {
    const stated = from === 'input' && fallback !== null ? defaultAt(path) : undefined
    if (stated === undefined || stated === null || String(stated) === String(fallback)) return []
    return [
      `${writeJsonPath(path)} is ${JSON.stringify(stated)} by default, and the price counts ${JSON.stringify(fallback)}`,
    ]
  })
}

/** Every value that a rule reads. */
export function sourcesOf(rule: PriceRule): readonly (Pick<ValueAt, 'from' | 'path'> & Partial<ValueAt>)[] {
  if (rule.kind !== 'sum') return []
  return rule.parts.flatMap(({ rate, times }) => [
    ...(rate.kind === 'table' ? rate.by : []),
    ...times,
    ...times.flatMap(({ actual }) => (actual === null ? [] : [actual])),
    ...times.flatMap(({ limits }) => limits.map((limit) => ({ from: 'input' as const, ...limit }))),
  ])
}
