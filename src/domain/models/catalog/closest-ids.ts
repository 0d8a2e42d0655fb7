/** Which ids somebody may have meant: few letters apart, or one a part of the other. */
import { editDistance } from '../../../../lib/closest-word.ts'

// Longer texts are cut: the cost grows with the square, and nobody mistypes that much.
const MAX_LENGTH = 96
/** Letters that may differ, as a share of the length. */
const TOLERANCE = 0.4

export function closestIds(wanted: string, ids: readonly string[], count: number): string[] {
  const text = wanted.toLowerCase().slice(0, MAX_LENGTH)
  return ids
    .map((id) => ({ id, distance: distanceTo(text, id) }))
    .filter(({ id, distance }) => distance <= Math.max(text.length, id.length) * TOLERANCE)
    .toSorted((a, b) => a.distance - b.distance || (a.id < b.id ? -1 : 1))
    .slice(0, count)
    .map(({ id }) => id)
}

/** Of the whole ids, or of the model's own name under any provider: the provider is easily forgotten. */
function distanceTo(wanted: string, id: string): number {
  const [, model = ''] = id.split('/', 2)
  const name = wanted.slice(wanted.indexOf('/') + 1)
  if (name !== '' && model === name) return 1
  if (name.length > 3 && (model.startsWith(name) || name.startsWith(model))) return 2
  return editDistance(wanted, id)
}
