/**
 * How a filter over the jobs of all accounts is answered. Few conditions have an index over the whole service: those whose entries are
 * few, or are written where no caller waits. The others are ranges of single accounts, or questions along the walk by time.
 */
import { DEFAULT_POOL } from '../../../domain/deployments/deployment.ts'
import { toTerm } from '../../../domain/jobs/submit/job-origin.ts'
import type { SummaryFilter } from '../../../domain/jobs/summaries/summary-store.ts'
import { JOB_STATUSES, type JobStatus } from '../../../domain/jobs/transitions.ts'
import {
  isHeld,
  MAX_RANGES,
  type RangeValues,
  type SearchPlan,
  type SearchQuestions,
  type SearchRange,
  toQuestions,
  toWordRanges,
} from './search-plan.ts'

/** A recipe or a title, and whose it is. */
export type OwnedName = readonly [accountId: string, name: string]

// Of all accounts together; a service with more titles is searched by the first of them.
export const MAX_TITLES = 500

export interface ServiceTerms {
  /** Recipes with the class and the weights; null: neither is asked for. */
  readonly recipes: readonly OwnedName[] | null
  /** What has the text; null: none is asked for. */
  readonly text: { readonly recipes: readonly OwnedName[]; readonly titles: readonly OwnedName[] } | null
  /** Accounts whose jobs carry the filter's first label. */
  readonly labelled: readonly string[]
  /** Accounts with ended jobs of the engine; null: an index has those of all accounts together. */
  readonly engineUsers: readonly string[] | null
  /** Accounts with jobs that wait, as far as these have to be walked one by one. */
  readonly waiting: readonly string[]
}

export function toServicePlan(filter: SummaryFilter, found: ServiceTerms): SearchPlan {
  const recipes = found.recipes === null ? null : [...new Set(found.recipes.map(([, recipe]) => recipe))]
  const all = toQuestions(filter, recipes)
  const plan = (ranges: readonly SearchRange[], answered: Partial<SearchQuestions> = {}): SearchPlan => {
    return { ranges, questions: { ...all, ...answered } }
  }
  if (filter.text !== null && found.text !== null) {
    const { recipes: named, titles } = found.text
    const words = toWordRanges(filter.text).map(toServiceRange)
    return plan([...words, ...titles.map(toTitleRange), ...named.map(toRecipeRange)].slice(0, MAX_RANGES))
  }
  const [label, ...others] = Object.entries(filter.metadata)
  if (label !== undefined && found.labelled.length <= MAX_RANGES)
    return plan(
      found.labelled.map((accountId) => ({ accountId, by: 'label', values: label })),
      { labels: others.length === 0 ? null : others },
    )
  if (filter.code !== null) return plan([toServiceRange({ by: 'code', values: [filter.code] })], { code: null })
  if (found.recipes !== null && found.recipes.length <= MAX_RANGES)
    return plan(found.recipes.map(toRecipeRange), { recipes: null })
  const users = found.engineUsers ?? [null]
  if (filter.engine !== null && users.length <= MAX_RANGES) {
    const values = [filter.engine] as const
    const ended = users.map((accountId): SearchRange => ({ accountId, by: 'engine', values }))
    return plan([...ended, ...(filter.statuses ?? JOB_STATUSES).filter(isHeld).map(toHeldRange)])
  }
  if (filter.pool !== null && filter.pool !== DEFAULT_POOL)
    return plan([toServiceRange({ by: 'whole_pool', values: [filter.pool] })], { pool: null })
  const statuses = filter.statuses === null ? null : toStatusRanges(filter.statuses, found.waiting)
  return statuses === null ? plan([BY_TIME]) : plan(statuses, { statuses: null })
}

const BY_TIME: SearchRange = { accountId: null, by: 'time', values: [] }

/** null: everything is walked by time. Most jobs have succeeded, so an index of those would hold nearly all of them. */
function toStatusRanges(statuses: readonly JobStatus[], waiting: readonly string[]): SearchRange[] | null {
  const isTooMuch = statuses.includes('queued') && waiting.length > MAX_RANGES
  if (isTooMuch || statuses.includes('succeeded')) return null
  return statuses.flatMap((status): SearchRange[] => {
    if (status === 'queued') return waiting.map((accountId) => ({ accountId, by: 'status', values: [status] }))
    return [isHeld(status) ? toHeldRange(status) : toServiceRange({ by: 'status', values: [status] })]
  })
}

function toServiceRange(range: RangeValues): SearchRange {
  return { ...range, accountId: null }
}

function toHeldRange(status: JobStatus): SearchRange {
  return { accountId: null, by: 'held', values: [status] }
}

function toRecipeRange([accountId, recipe]: OwnedName): SearchRange {
  return { accountId, by: 'recipe', values: [recipe] }
}

function toTitleRange([accountId, title]: OwnedName): SearchRange {
  return { accountId, by: 'title', values: [title] }
}

/** The terms of the class and the weights that are asked for; null: neither is. */
export function toTerms({
  classType,
  weights,
}: Pick<SummaryFilter, 'classType' | 'weights'>): Record<'classTerm' | 'weightsTerm', string | null> | null {
  if (classType === null && weights === null) return null
  return {
    classTerm: classType === null ? null : toTerm('class', classType),
    weightsTerm: weights === null ? null : toTerm('weights', weights),
  }
}
