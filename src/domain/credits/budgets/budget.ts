/**
 * Budgets: how much an account, or a part of what it does, may spend in a period. What is held counts as spent, in the period in which it
 * was held, and is corrected when it is charged or released. Pure: a store counts in the transaction that holds or settles.
 */
import { type Micros, writeUsd } from '../../../../lib/text/usd.ts'
import type { ChargeLabels } from '../charges.ts'
import { type BudgetPeriod, lengthOf, partOf, spanAt } from './periods.ts'

const BUDGET_SUBJECTS = ['account', 'key', 'model', 'endpoint', 'tag'] as const
/** What it is for; `value` is null for the account as a whole. A model may have stars in it: `kling/*`. */
type BudgetSubject = (typeof BUDGET_SUBJECTS)[number]

export interface BudgetRaise {
  readonly micros: Micros
  /** From then on the limit is as before. */
  readonly until: Date
}

/** What was counted. */
export interface BudgetCounts {
  /** Of a calendar period, its begin and end; of a rolling one, 0. */
  readonly from: number
  readonly until: number
  /** When each part of the period began, ascending, and what was spent in it. A calendar period has one. */
  readonly parts: readonly (readonly [begin: number, micros: Micros])[]
  /** The shares that were told of, and when. */
  readonly told: readonly (readonly [share: number, at: number])[]
}

export const NO_COUNTS: BudgetCounts = { from: 0, until: 0, parts: [], told: [] }

export interface Budget extends BudgetPeriod {
  readonly id: string
  readonly accountId: string
  readonly name: string
  /** Who made it, and may change it. */
  readonly owner: 'operator' | 'account'
  readonly subject: BudgetSubject
  readonly value: string | null
  readonly limitMicros: Micros
  /** In percent: a webhook is told once in a period when so much is spent. */
  readonly shares: readonly number[]
  /** False: it only tells. */
  readonly isHard: boolean
  readonly raiseMicros: Micros | null
  readonly raiseUntil: Date | null
  readonly counts: BudgetCounts
  readonly createdAt: Date
  readonly changedAt: Date
}

/** Why something cannot be held. */
export interface BudgetExcess extends Pick<Budget, 'name' | 'subject' | 'value' | 'unit' | 'style' | 'timeZone'> {
  readonly limitMicros: Micros
  readonly spentMicros: Micros
  readonly neededMicros: Micros
  /** When it begins anew, or the first part of a rolling one leaves it. */
  readonly resetsAt: Date
}

export function matchesBudget(
  { subject, value }: Pick<Budget, 'subject' | 'value'>,
  { keyId, model, endpoint, tag }: ChargeLabels,
): boolean {
  switch (subject) {
    case 'account':
      return true
    case 'key':
      return keyId !== null && keyId === value
    case 'endpoint':
      return endpoint !== null && endpoint === value
    case 'tag':
      return tag !== null && tag === value
    case 'model':
      return model !== null && value !== null && matchesStars(value, model)
  }
}

const TAG_MAX_LENGTH = 64

/** What is no tag is no reason to refuse what it came with. */
export function readBudgetTag(value: unknown): string | null {
  return typeof value === 'string' && value !== '' && value.length <= TAG_MAX_LENGTH ? value : null
}

/** A star stands for any letters but a slash; alone, for every model. */
function matchesStars(pattern: string, text: string): boolean {
  if (pattern === '*') return true
  const [wanted, given] = [pattern.split('/'), text.split('/')]
  return wanted.length === given.length && wanted.every((each, index) => matchesPart(each, given[index] ?? ''))
}

function matchesPart(pattern: string, text: string): boolean {
  const [first = '', ...rest] = pattern.split('*')
  if (rest.length === 0) return pattern === text
  let from = first.length
  if (!text.startsWith(first)) return false
  const last = rest.pop() ?? ''
  for (const piece of rest) {
    const at = text.indexOf(piece, from)
    if (at < 0) return false
    from = at + piece.length
  }
  return text.length - last.length >= from && text.endsWith(last)
}

/** As they stand at a moment: what is over is gone. A clock that is behind turns nothing back. */
export function countsAt(period: BudgetPeriod, counts: BudgetCounts, at: number): BudgetCounts {
  if (period.style === 'calendar') return at < counts.until ? counts : { ...spanAt(period, at), parts: [], told: [] }
  const now = Math.max(at, counts.parts.at(-1)?.[0] ?? at)
  const [part, oldest] = [partOf(period), now - lengthOf(period)]
  const parts = counts.parts.filter(([begin]) => begin + part > oldest)
  const told = counts.told.filter(([, when]) => when > oldest)
  return parts.length === counts.parts.length && told.length === counts.told.length
    ? counts
    : { from: 0, until: 0, parts, told }
}

export function spentOf({ parts }: BudgetCounts): Micros {
  return parts.reduce((sum, [, micros]) => sum + micros, 0)
}

/** So much more is held. */
export function addSpend(period: BudgetPeriod, before: BudgetCounts, at: number, micros: Micros): BudgetCounts {
  const counts = countsAt(period, before, at)
  const part = partOf(period)
  const begin =
    period.style === 'calendar' ? counts.from : Math.max(Math.floor(at / part) * part, counts.parts.at(-1)?.[0] ?? 0)
  const last = counts.parts.at(-1)
  const parts =
    last?.[0] === begin
      ? [...counts.parts.slice(0, -1), [begin, last[1] + micros] as const]
      : [...counts.parts, [begin, micros] as const]
  return { ...counts, parts }
}

/** What was held at `heldAt` turned out to be more or less, as far as that part is still in the period. */
export function correctSpend(
  budget: BudgetPeriod & Pick<Budget, 'counts' | 'createdAt'>,
  { heldAt, at, change }: { readonly heldAt: number; readonly at: number; readonly change: Micros },
): BudgetCounts {
  const counts = countsAt(budget, budget.counts, at)
  // What was held before there was a budget was counted in its first part.
  const since = budget.style === 'calendar' ? heldAt : Math.max(heldAt, budget.createdAt.getTime())
  const index = counts.parts.findLastIndex(([begin]) => begin <= since)
  const found = counts.parts[index]
  if (found === undefined || (budget.style === 'rolling' && since >= found[0] + partOf(budget))) return counts
  const parts = counts.parts.with(index, [found[0], Math.max(0, found[1] + change)])
  return { ...counts, parts }
}

/** When something counts that was held by a clock which may be behind: in no part that others have closed. */
export function heldAtFor({ counts: { from, parts } }: Pick<Budget, 'counts'>, at: number): number {
  return Math.max(at, from, parts.at(-1)?.[0] ?? at)
}

export function limitAt({ limitMicros, raiseMicros, raiseUntil }: Budget, at: number): Micros {
  const isRaised = raiseMicros !== null && raiseUntil !== null && at < raiseUntil.getTime()
  return limitMicros + (isRaised ? raiseMicros : 0)
}

/** What stands against holding so much more; null: nothing. */
export function findBudgetExcess(budget: Budget, at: number, micros: Micros): BudgetExcess | null {
  if (!budget.isHard) return null
  const counts = countsAt(budget, budget.counts, at)
  const [spentMicros, limitMicros] = [spentOf(counts), limitAt(budget, at)]
  if (spentMicros + micros <= limitMicros) return null
  const { name, subject, value, unit, style, timeZone } = budget
  const about = { name, subject, value, unit, style, timeZone }
  return { ...about, limitMicros, spentMicros, neededMicros: micros, resetsAt: resetOf(budget, counts, at) }
}

export function resetOf(period: BudgetPeriod, { until, parts }: BudgetCounts, at: number): Date {
  if (period.style === 'calendar') return new Date(until)
  return new Date((parts[0]?.[0] ?? at) + partOf(period) + lengthOf(period))
}

/** The shares that this much has reached and that nobody was told of in this period, with the counts that say so from now on. */
export function reachShares(
  budget: Budget,
  at: number,
): { readonly reached: readonly number[]; readonly counts: BudgetCounts } {
  const { counts, shares } = budget
  const [spent, limit] = [spentOf(counts), limitAt(budget, at)]
  const known = new Set(counts.told.map(([share]) => share))
  const reached = shares.filter((share) => !known.has(share) && spent * 100 >= share * limit)
  return { reached, counts: { ...counts, told: [...counts.told, ...reached.map((share) => [share, at] as const)] } }
}

const SUBJECT_WORDS: Readonly<Record<BudgetSubject, string>> = {
  account: 'this account',
  key: 'the key',
  model: 'the model',
  endpoint: 'the endpoint',
  tag: 'the tag',
}

/** For the caller who is refused. */
export function sayBudget(excess: BudgetExcess): string {
  const { name, subject, value, unit, style, timeZone, limitMicros, spentMicros, neededMicros, resetsAt } = excess
  const of = value === null ? SUBJECT_WORDS[subject] : `${SUBJECT_WORDS[subject]} ${value}`
  const period = style === 'calendar' ? `a ${unit}` : `any ${unit}`
  const usd = (micros: Micros) => `${writeUsd(micros)} USD`
  const spent = `${usd(spentMicros)} of ${usd(limitMicros)} are spent or set aside, and this needs up to ${usd(neededMicros)}`
  const zone = style === 'calendar' && unit !== 'hour' ? ` (${timeZone})` : ''
  const reset =
    style === 'calendar'
      ? `it begins anew at ${resetsAt.toISOString()}${zone}`
      : `room comes back from ${resetsAt.toISOString()} on`
  return `the budget "${name}" of ${of} for ${period} is used up: ${spent}; ${reset}`
}
