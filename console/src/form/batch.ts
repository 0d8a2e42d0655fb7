/**
 * One form, several jobs: an input with a list of values makes a job for each of them. Several lists make every combination, or go
 * side by side, the first of each together, then the second. Pure.
 */
import { formatUsd } from '../text/format.ts'
import { type Field, type InputChange, readField } from './workflow-fields.ts'

export interface BatchList {
  readonly node: string
  readonly input: string
  /** JSON texts. */
  readonly valueTexts: readonly string[]
}

export type BatchWay = 'combinations' | 'side by side'

/** More at once are more than a person can look through, and more than most queues hold. */
export const MAX_BATCH = 500

/** How many jobs; or why none can be made. */
export function countBatch(lists: readonly BatchList[], way: BatchWay): number | { readonly problem: string } {
  if (lists.length === 0) return 1
  const lengths = lists.map(({ valueTexts }) => valueTexts.length)
  if (lengths.includes(0)) return { problem: 'a list of values is empty' }
  // A list of one value goes with every other.
  const isUneven = way === 'side by side' && new Set(lengths.filter((length) => length > 1)).size > 1
  if (isUneven) return { problem: `side by side needs lists of one length, these have ${lengths.join(', ')}` }
  const count = way === 'side by side' ? Math.max(...lengths) : lengths.reduce((product, length) => product * length, 1)
  return count > MAX_BATCH ? { problem: `${count} jobs are too many: at most ${MAX_BATCH} at once` } : count
}

/** The changes of each job, in the order of the lists: the last one changes fastest. */
export function toBatch(lists: readonly BatchList[], way: BatchWay): readonly (readonly InputChange[])[] {
  const count = countBatch(lists, way)
  if (typeof count !== 'number') return []
  return Array.from({ length: count }, (_, index) => {
    let rest = index
    return lists
      .toReversed()
      .map(({ node, input, valueTexts }) => {
        const at = (way === 'side by side' ? index : rest) % valueTexts.length
        rest = Math.floor(rest / valueTexts.length)
        return { node, input, valueText: valueTexts[at] }
      })
      .toReversed()
  })
}

/** Texts of several lines cannot be divided by lines. */
const DIVIDER = /^---+$/m

/** The values of a list as they were typed: one in a line, or between lines of `---`. */
export function splitValues(kind: Field['kind'], text: string): readonly string[] {
  const parts = kind === 'multiline' || kind === 'json' ? text.split(DIVIDER) : text.split('\n')
  return parts.map((part) => part.trim()).filter((part) => part !== '')
}

export function joinValues(kind: Field['kind'], values: readonly string[]): string {
  return values.join(kind === 'multiline' || kind === 'json' ? '\n---\n' : '\n')
}

/** Each value by the rules of its field; the first that breaks them is named. */
export function readValues(
  field: Field,
  text: string,
): { readonly valueTexts: readonly string[] } | { readonly problem: string } {
  const values = splitValues(field.kind, text)
  if (values.length === 0) return { problem: 'no value yet' }
  if (values.length > MAX_BATCH) return { problem: `at most ${MAX_BATCH} values` }
  const valueTexts: string[] = []
  for (const [index, value] of values.entries()) {
    const read = readField(field, value)
    if ('problem' in read) return { problem: `value ${index + 1}: ${read.problem}` }
    valueTexts.push(read.valueText)
  }
  return { valueTexts }
}

/** What jobs may cost before they are run. Pure. */
interface JobPrice {
  readonly per_second_usd: string
  /** Set aside when a job is submitted. */
  readonly hold_usd: string
}

const MICROS = 1_000_000

/** null: jobs cost nothing here. */
export function jobsPrice(price: JobPrice | null, count: number): string {
  if (price === null) return ''
  // In millionths, as the ledger counts, so that many small ones add up to what is held.
  const held = (Math.round(Number(price.hold_usd) * MICROS) * count) / MICROS
  return `${formatUsd(price.per_second_usd)} a second, ${formatUsd(held.toFixed(6))} set aside`
}
