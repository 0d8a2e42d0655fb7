/**
 * How a filter over jobs is answered: which ordered ranges of an index hold every job that can fit, and what is still to be asked
 * of each job in them. The narrowest condition gives the ranges, the others become questions.
 */
import { DEFAULT_POOL } from '../../../domain/deployments/deployment.ts'
import type { OutputType } from '../../../domain/jobs/job.ts'
import type { SummaryFilter } from '../../../domain/jobs/summaries/summary-store.ts'
import { JOB_STATUSES, type JobStatus } from '../../../domain/jobs/transitions.ts'

/** Entries in the order of (created at, id): all that the index has under these values. */
export type SearchRange = RangeValues & {
  /** The account whose jobs it holds; null: those of all. */
  readonly accountId: string | null
}

export type RangeValues =
  | { readonly by: 'status'; readonly values: readonly [JobStatus] }
  | { readonly by: 'pool'; readonly values: readonly [pool: string, JobStatus] }
  | { readonly by: 'engine' | 'code' | 'recipe' | 'title'; readonly values: readonly [string] }
  /** Which types their outputs have (rows/output-types.ts). */
  | { readonly by: 'outputs'; readonly values: readonly [mask: number] }
  | { readonly by: 'label'; readonly values: readonly [key: string, value: string] }
  | { readonly by: 'id'; readonly values: readonly [from: string, to: string] }
  | LiveRange
  | ServiceRange

/** Jobs that have not ended, where the indexes of what jobs share hold ended ones only: each is asked for the text or its recipe. */
interface LiveRange {
  readonly by: 'live' | 'live_held'
  readonly values: readonly [JobStatus, text: string | null, recipes: string]
}

export function isLive({ by }: Pick<SearchRange, 'by'>): boolean {
  return by === 'live' || by === 'live_held'
}

/** What only a search over all accounts walks: everything by time, a pool whole, and jobs that run. */
type ServiceRange =
  | { readonly by: 'time'; readonly values: readonly [] }
  | { readonly by: 'whole_pool'; readonly values: readonly [pool: string] }
  | { readonly by: 'held'; readonly values: readonly [JobStatus] }

/** Asked of each job; null: nothing. */
export interface SearchQuestions {
  readonly statuses: readonly JobStatus[] | null
  readonly code: string | null
  readonly engine: string | null
  readonly pool: string | null
  readonly labels: readonly (readonly [key: string, value: string])[] | null
  /** Recipes that it may have. */
  readonly recipes: readonly string[] | null
  /** Of this type it has an output. */
  readonly outputs: OutputType | 'any' | null
  /** And one of this node; only together with `outputs`. */
  readonly node: string | null
}

export interface SearchPlan {
  readonly ranges: readonly SearchRange[]
  readonly questions: SearchQuestions
}

/** Whether a job of the range can fail to fit: then more entries are walked than are wanted. */
export function isSelective({ questions }: Pick<SearchPlan, 'questions'>, range: SearchRange): boolean {
  if (isLive(range)) return true
  const asked = Object.entries(questions).filter(([, question]) => question !== null)
  return asked.some(([name]) => name !== range.by)
}

/** Whether nothing but times is asked for: then there are counters. A plan without a range finds nothing. */
export function isPlain(plan: SearchPlan): boolean {
  const isWalkOfAll = (range: SearchRange) => range.by === 'status' || range.by === 'time'
  return plan.ranges.length > 0 && plan.ranges.every((range) => isWalkOfAll(range) && !isSelective(plan, range))
}

const WALKED_ENTRIES = 1000
const MIN_WALK = 4

/** How many entries of a range are looked at in one go. What many ranges give for a page comes from all of them alike. */
export function toWalkLength(plan: SearchPlan, range: SearchRange, limit: number): number {
  const share = Math.max(1, plan.ranges.filter(({ by }) => by === range.by).length)
  if (isSelective(plan, range)) return Math.max(MIN_WALK, Math.ceil(WALKED_ENTRIES / share))
  return Math.min(limit + 1, Math.max(MIN_WALK, Math.ceil((2 * (limit + 1)) / share)))
}

/** What the filter's words stand for, as far as the store has to look it up. */
export interface FoundTerms {
  /** Recipes with the class and the weights; null: neither is asked for. */
  readonly recipes: readonly string[] | null
  /** For the text: recipes, labels and titles that have it. */
  readonly text: FoundText | null
  /** Which sets of types the outputs of ended jobs have that have the type asked for; null: none is. */
  readonly masks: readonly number[] | null
}

interface FoundText {
  readonly recipes: readonly string[]
  readonly labels: readonly (readonly [key: string, value: string])[]
  readonly titles: readonly string[]
}

// Beyond this a common walk is cheaper than one range for each.
export const MAX_RANGES = 150

/** Everything that a filter asks for. */
export function toQuestions(filter: SummaryFilter, recipes: readonly string[] | null): SearchQuestions {
  const labels = Object.entries(filter.metadata)
  return {
    statuses: filter.statuses,
    code: filter.code,
    engine: filter.engine,
    pool: filter.pool,
    labels: labels.length === 0 ? null : labels,
    recipes,
    outputs: filter.outputs?.type ?? null,
    node: filter.outputs?.nodeId ?? null,
  }
}

interface AccountTerms extends FoundTerms {
  readonly accountId: string
}

export function toSearchPlan(filter: SummaryFilter, found: AccountTerms): SearchPlan {
  const { accountId } = found
  const statuses = filter.statuses ?? JOB_STATUSES
  const labels = Object.entries(filter.metadata)
  const all = toQuestions(filter, found.recipes)
  const plan = (ranges: readonly RangeValues[], answered: Partial<SearchQuestions>): SearchPlan => {
    return { ranges: ranges.map((range) => ({ ...range, accountId })), questions: { ...all, ...answered } }
  }
  if (filter.text !== null && found.text !== null) return plan(toTextRanges(filter.text, found.text), {})
  const [first, ...others] = labels
  if (first !== undefined)
    return plan([{ by: 'label', values: first }], { labels: others.length === 0 ? null : others })
  if (filter.code !== null) return plan([{ by: 'code', values: [filter.code] }], { code: null })
  if (found.recipes !== null && found.recipes.length <= MAX_RANGES)
    return plan(found.recipes.map(toRecipeRange), { recipes: null })
  if (found.masks !== null && filter.outputs !== null)
    return plan([...found.masks.map(toOutputRange), ...toHeldRanges(statuses)], {})
  if (filter.engine !== null) return plan([{ by: 'engine', values: [filter.engine] }, ...toHeldRanges(statuses)], {})
  if (filter.pool !== null && filter.pool !== DEFAULT_POOL) {
    // Deployments have an index of their own; nearly everything else is in the common pool.
    const { pool } = filter
    return plan(
      statuses.map((status) => ({ by: 'pool', values: [pool, status] })),
      { pool: null, statuses: null },
    )
  }
  return plan(
    statuses.map((status) => ({ by: 'status', values: [status] })),
    { statuses: null },
  )
}

function toRecipeRange(recipe: string): RangeValues {
  return { by: 'recipe', values: [recipe] }
}

function toOutputRange(mask: number): RangeValues {
  return { by: 'outputs', values: [mask] }
}

/** Jobs that run are few: they need no index by engine, nor by what they have made so far. */
function toHeldRanges(statuses: readonly JobStatus[]): RangeValues[] {
  return statuses.filter(isHeld).map((status) => ({ by: 'status', values: [status] }))
}

export function isHeld(status: JobStatus): boolean {
  return status === 'running' || status === 'canceling'
}

// Ids begin with their time: fewer letters would be a range of hours.
const ID_BEGINNING = /^[0-9a-f]{8,32}$/

function toTextRanges(text: string, found: FoundText): RangeValues[] {
  const ranges: RangeValues[] = [
    ...toWordRanges(text),
    ...found.labels.map((values): RangeValues => ({ by: 'label', values })),
    ...found.titles.map((title): RangeValues => ({ by: 'title', values: [title] })),
    ...found.recipes.map(toRecipeRange),
  ]
  return ranges.slice(0, MAX_RANGES)
}

/** What a text may be by itself: an id or its beginning, and an error code. */
export function toWordRanges(text: string): RangeValues[] {
  // With its hyphens or without.
  const id = text.toLowerCase().replaceAll('-', '')
  const ids: RangeValues[] = ID_BEGINNING.test(id) ? [{ by: 'id', values: toIdRange(id) }] : []
  return [...ids, { by: 'code', values: [text] }]
}

const ID_DIGITS = 32

function toIdRange(beginning: string): [from: string, to: string] {
  return [toId(beginning.padEnd(ID_DIGITS, '0')), toId(beginning.padEnd(ID_DIGITS, 'f'))]
}

function toId(digits: string): string {
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
