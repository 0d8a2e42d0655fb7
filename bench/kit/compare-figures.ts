/** Says which figures of two checkouts differ by more than chance, from several runs of each. Pure. */
import type { Figure } from './figure.ts'

/** The figures of one run, as bench/results/latest.json has them. */
export type Run = readonly Figure[]

export interface Comparison {
  readonly name: string
  readonly unit: string
  readonly before: Spread
  readonly after: Spread
  /** Of the medians: 1.1 means that the figure has grown by a tenth. */
  readonly ratio: number
  readonly verdict: 'better' | 'worse' | 'within noise' | 'too few runs'
}

interface Spread {
  readonly median: number
  readonly least: number
  readonly most: number
}

// One chance in fifty that equal checkouts are told apart: a run has twenty figures. Five runs of each are enough to show it.
const SIGNIFICANT = 0.02

/** Figures that only one of the two has are left out: there is nothing to compare them with. */
export function compareFigures(before: readonly Run[], after: readonly Run[]): Comparison[] {
  const earlier = byName(before)
  return [...byName(after)].flatMap(([name, { figure, values }]) => {
    const known = earlier.get(name)
    if (known === undefined) return []
    const [from, to] = [toSpread(known.values), toSpread(values)]
    const verdict = judge(known.values, values, figure.direction)
    return [{ name, unit: figure.unit, before: from, after: to, ratio: to.median / from.median, verdict }]
  })
}

interface Measured {
  readonly figure: Figure
  readonly values: number[]
}

function byName(runs: readonly Run[]): Map<string, Measured> {
  const found = new Map<string, Measured>()
  for (const figure of runs.flat()) {
    const name = toKey(figure.name)
    const measured = found.get(name) ?? { figure, values: [] }
    measured.values.push(figure.measured)
    found.set(name, measured)
  }
  return found
}

/** Some names carry another figure of the same run in parentheses; those differ from run to run. */
function toKey(name: string): string {
  return name.replace(/ \([^)]*\d[^)]*\)/g, '')
}

function toSpread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b)
  const [lower, upper] = [sorted[Math.floor((sorted.length - 1) / 2)], sorted[Math.ceil((sorted.length - 1) / 2)]]
  return { median: ((lower ?? 0) + (upper ?? 0)) / 2, least: sorted[0] ?? 0, most: sorted.at(-1) ?? 0 }
}

function judge(
  before: readonly number[],
  after: readonly number[],
  direction: Figure['direction'],
): Comparison['verdict'] {
  if (chanceAtBest(before.length, after.length) > SIGNIFICANT) return 'too few runs'
  if (rankChance(before, after) > SIGNIFICANT) return 'within noise'
  const hasGrown = toSpread(after).median > toSpread(before).median
  return hasGrown === (direction === 'at_least') ? 'better' : 'worse'
}

/**
 * The two-sided chance that equal checkouts would differ in rank at least as much (Mann and Whitney), counted exactly: every way to deal
 * the values out to the two is equally likely. Ranks rather than means, because one disturbed run must not decide.
 */
function rankChance(before: readonly number[], after: readonly number[]): number {
  const all = [...before, ...after]
  const expected = (before.length * after.length) / 2
  const wins = (mine: readonly number[], others: readonly number[]) =>
    mine.reduce((sum, a) => sum + others.reduce((inner, b) => inner + (a > b ? 1 : a === b ? 0.5 : 0), 0), 0)
  const observed = Math.abs(wins(after, before) - expected)
  let [extreme, total] = [0, 0]
  for (const chosen of choices(all.length, after.length)) {
    const mine = all.filter((_, place) => chosen.has(place))
    const others = all.filter((_, place) => !chosen.has(place))
    total += 1
    if (Math.abs(wins(mine, others) - expected) >= observed) extreme += 1
  }
  return extreme / total
}

function chanceAtBest(before: number, after: number): number {
  let ways = 1
  for (let step = 1; step <= after; step += 1) ways = (ways * (before + step)) / step
  return 2 / ways
}

function* choices(size: number, wanted: number, from = 0): Generator<Set<number>> {
  if (wanted === 0) return yield new Set()
  for (let place = from; place <= size - wanted; place += 1) {
    for (const rest of choices(size, wanted - 1, place + 1)) yield rest.add(place)
  }
}
