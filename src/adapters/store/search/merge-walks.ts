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
  const sign = order === 'newest' ? -1 : 1
  const heads = walks.map((walk) => toHead(walk, keyOf))
  const entries: Entry[] = []
  let last: PageKey | null = null
  while (true) {
    const first = findFirst(heads, sign)
    const head = heads[first]
    if (head === undefined || head.key === null) return { entries, resumeAfter: null }
    const entry = head.walk.entries[head.at]
    if (entry === undefined) return { entries, resumeAfter: head.key }
    // The same job may stand in several ranges.
    if (last === null || compareKeys(last, head.key) !== 0) {
      if (entries.length === limit) return { entries, resumeAfter: last }
      entries.push(entry)
      last = head.key
    }
    head.at += 1
    head.key = keyAt(head, keyOf)
  }
}

/** How far a walk has been taken. */
interface Head<Entry> {
  readonly walk: Walk<Entry>
  at: number
  /** Of the next entry, or of where the walk was cut; null: it is used up. */
  key: PageKey | null
}

function toHead<Entry>(walk: Walk<Entry>, keyOf: (entry: Entry) => PageKey): Head<Entry> {
  return { walk, at: 0, key: keyAt({ walk, at: 0 }, keyOf) }
}

function keyAt<Entry>(
  { walk, at }: Pick<Head<Entry>, 'walk' | 'at'>,
  keyOf: (entry: Entry) => PageKey,
): PageKey | null {
  const entry = walk.entries[at]
  return entry === undefined ? walk.cutAt : keyOf(entry)
}

/** The walk that comes next; -1 when all are used up. Of two at the same place, the one with an entry there. */
function findFirst(heads: readonly Head<unknown>[], sign: number): number {
  let first = -1
  let firstKey: PageKey | null = null
  for (const [index, { key, walk, at }] of heads.entries()) {
    if (key === null) continue
    const order = firstKey === null ? -1 : sign * compareKeys(key, firstKey)
    if (order < 0 || (order === 0 && at < walk.entries.length)) {
      first = index
      firstKey = key
    }
  }
  return first
}

function compareKeys([leftAt, leftId]: PageKey, [rightAt, rightId]: PageKey): number {
  if (leftAt !== rightAt) return leftAt - rightAt
  return leftId === rightId ? 0 : leftId < rightId ? -1 : 1
}
