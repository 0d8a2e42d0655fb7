/** A model in words for people: what it is called, what it is for and what it costs. Pure. */
import { writeUsd } from '../../../../lib/text/usd.ts'
import type { Model, PricePart, PriceRule } from './model.ts'

const MAX_LENGTH = 500

/** `flux-2-pro` as `Flux 2 pro`: data files have no names of their own. */
export function titleOf({ model }: Pick<Model, 'model'>): string {
  const words = model.replaceAll(/[-_]+/g, ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** What the schema says of itself; null: nothing. */
export function describeModel({ input }: Pick<Model, 'input'>): string | null {
  const text = input.schema?.['description']
  return typeof text === 'string' && text !== '' ? text.slice(0, MAX_LENGTH) : null
}

/** null: only the provider knows. What a very input costs is estimated elsewhere. */
export function describePrice(rule: PriceRule): string | null {
  switch (rule.kind) {
    case 'free':
      return 'free'
    case 'sum':
      return rule.parts.map(describePart).join(' + ')
    case 'reported':
      return `what the provider reports, at most $${writeUsd(rule.holdMicros)}`
    case 'unknown':
      return null
  }
}

function describePart({ unit, rate, per }: PricePart): string {
  const of = per === 1 ? unit : `${per.toLocaleString('en-US')} ${unit}s`
  if (rate.kind === 'fixed') return `$${toDollars(rate.micros)} per ${of}`
  const rates = [...rate.micros.values()]
  const [least, most] = [Math.min(...rates), Math.max(...rates)]
  return least === most ? `$${toDollars(least)} per ${of}` : `$${toDollars(least)} to $${toDollars(most)} per ${of}`
}

/** Rates may be fractions of a millionth. */
function toDollars(micros: number): string {
  if (Number.isInteger(micros)) return writeUsd(micros)
  return (micros / 1_000_000).toFixed(9).replace(/0+$/, '')
}
