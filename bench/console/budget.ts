/** A figure that must not be larger than its bar, and the middle and the upper end of many measurements. */
import type { Figure } from '../kit/figure.ts'

type Detail = Figure['detail']

export function atMost(name: string, [measured, bar]: readonly [number, number], unit: string, detail: Detail): Figure {
  return { name: `console: ${name}`, measured, bar, unit, direction: 'at_most', detail }
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}
