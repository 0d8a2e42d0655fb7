/**
 * The models as callers see them: found by id, walked page by page in the order of their ids, and suggested to whoever
 * mistypes one. A catalogue never changes; a reload makes a new one, and calls under way keep the model they began with.
 */
import { editDistance } from '../../../../lib/text/closest-word.ts'
import type { CheckInput } from './check-input.ts'
import type { Model } from './model.ts'

interface CataloguedModel {
  readonly model: Model
  readonly checkInput: CheckInput
}

interface Page {
  readonly models: readonly Model[]
  readonly hasMore: boolean
}

/** Whether this caller may see and use the model. */
type IsVisible = (model: Model) => boolean

export interface Catalog {
  readonly loadedAt: Date
  readonly size: number
  /** null for an id that is unknown, or not released yet. Retired ones are found: their answer names a successor. */
  find(id: string): CataloguedModel | null
  /** The same for a call that is under way, whatever became of its model; also for models of partner nodes, which are in no list. */
  findToRun(id: string): Model | null
  /** Models whose ids come after `after`, which need not exist any more. */
  page(after: string | null, limit: number, isVisible: IsVisible): Page
  /** At most three ids that look like the wanted one. */
  suggest(id: string, isVisible: IsVisible): readonly string[]
  all(): readonly Model[]
}

const MAX_SUGGESTIONS = 3
// Longer texts are cut: the cost grows with the square, and nobody mistypes that much.
const MAX_COMPARED_LENGTH = 96
/** Letters of an id that may differ, as a share of its length. */
const TOLERANCE = 0.4

export function createCatalog(
  entries: readonly CataloguedModel[],
  loadedAt: Date,
  unlisted: readonly Model[] = [],
): Catalog {
  const hidden = new Map(unlisted.map((model) => [model.id, model]))
  const byId = new Map(entries.map((entry) => [entry.model.id, entry]))
  const models = entries.map(({ model }) => model).toSorted((a, b) => compare(a.id, b.id))
  const listed = models.filter(({ state }) => state === 'released' || state === 'listed')
  return {
    loadedAt,
    size: listed.length,
    find(id) {
      const found = byId.get(id)
      return found === undefined || found.model.state === 'unreleased' ? null : found
    },
    findToRun: (id) => hidden.get(id) ?? byId.get(id)?.model ?? null,
    page(after, limit, isVisible) {
      const start = after === null ? 0 : firstBehind(listed, after)
      const found: Model[] = []
      let at = start
      // One more than asked for, to know whether there are more.
      for (; at < listed.length && found.length <= limit; at++) if (isVisible(listed[at])) found.push(listed[at])
      return { models: found.slice(0, limit), hasMore: found.length > limit }
    },
    suggest(id, isVisible) {
      const visible = listed.filter((model) => model.state === 'released' && isVisible(model))
      return closestIds(
        id,
        visible.map((model) => model.id),
      )
    },
    all: () => models,
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}

function firstBehind(models: readonly Model[], id: string): number {
  let low = 0
  let high = models.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (models[middle].id > id) high = middle
    else low = middle + 1
  }
  return low
}

/** The ids that somebody may have meant: few letters apart, or the right name under another provider. */
function closestIds(wanted: string, ids: readonly string[]): string[] {
  const text = wanted.toLowerCase().slice(0, MAX_COMPARED_LENGTH)
  return ids
    .map((id) => ({ id, distance: distanceTo(text, id) }))
    .filter(({ id, distance }) => distance <= Math.max(text.length, id.length) * TOLERANCE)
    .toSorted((a, b) => a.distance - b.distance || compare(a.id, b.id))
    .slice(0, MAX_SUGGESTIONS)
    .map(({ id }) => id)
}

/** Between the whole ids; nearer where the model's own name is right or cut short, because the provider is easily forgotten. */
function distanceTo(wanted: string, id: string): number {
  const [, model = ''] = id.split('/', 2)
  const name = wanted.slice(wanted.indexOf('/') + 1)
  if (name !== '' && model === name) return 1
  if (name.length > 3 && (model.startsWith(name) || name.startsWith(model))) return 2
  return editDistance(wanted, id)
}
