/**
 * One page out of several ordered walks. A walk that was cut may have entries behind its last one that belong between those of the
 * others: what lies behind the first such end is left for the next round.
 */
export type PageKey = readonly [createdAt: number, jobId: string]

export interface Walk<Entry> {
  /** In order. */
  readonly entries: readonly Entry[]
  /** The last entry that was looked at, where the walk stopped before its end; null: it has seen everything. */
  readonly cutAt: PageKey | null
}

export interface MergedPage<Entry> {
  readonly entries: readonly Entry[]
  /** Where to go on; null: there is nothing more. */
  readonly resumeAfter: PageKey | null
}

interface MergeOptions<Entry> {
  readonly order: 'newest' | 'oldest'
  readonly limit: number
  readonly keyOf: (entry: Entry) => PageKey
}

export function mergeWalks<Entry>(
  walks: readonly Walk<Entry>[],
  { order, limit, keyOf }: MergeOptions<Entry>,
): MergedPage<Entry> {
  const compare = order === 'newest' ? (left: PageKey, right: PageKey) => compareKeys(right, left) : compareKeys
  const cuts = walks.flatMap(({ cutAt }) => (cutAt === null ? [] : [cutAt])).sort(compare)
  const [horizon = null] = cuts
  const sure = walks
    .flatMap(({ entries }) => entries)
    .filter((entry) => horizon === null || compare(keyOf(entry), horizon) <= 0)
    .sort((left, right) => compare(keyOf(left), keyOf(right)))
  // The same job may stand in several ranges.
  const entries = sure.filter(
    (entry, index) => index === 0 || compare(keyOf(sure[index - 1] as Entry), keyOf(entry)) !== 0,
  )
  const last = entries[limit - 1]
  if (last !== undefined && entries.length > limit)
    return { entries: entries.slice(0, limit), resumeAfter: keyOf(last) }
  return { entries, resumeAfter: horizon }
}

export function isSameKey(left: PageKey | null, right: PageKey | null): boolean {
  return left !== null && right !== null && compareKeys(left, right) === 0
}

function compareKeys([leftAt, leftId]: PageKey, [rightAt, rightId]: PageKey): number {
  if (leftAt !== rightAt) return leftAt - rightAt
  return leftId === rightId ? 0 : leftId < rightId ? -1 : 1
}
