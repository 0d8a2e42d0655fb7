/** Which files a list shows, in which order, and which of them are on a page. Pure. */
import type { LibraryEntry } from './library-entry.ts'

export const SORTS = ['name', 'created_at', 'updated_at', 'size', 'last_access_time'] as const

export interface LibraryFilter {
  /** It has all of these. */
  readonly allTags: readonly string[]
  /** It has one of these; empty: any. */
  readonly anyTags: readonly string[]
  /** It has none of these. */
  readonly noTags: readonly string[]
  /** In its name, whatever the case; '' for any. */
  readonly nameContains: string
  /** By member: a value, a list of which one fits, or null for a member that is missing. */
  readonly metadata: Readonly<Record<string, unknown>>
  /** A hash, or what a node names; null: any. */
  readonly named: string | null
}

interface LibraryOrder {
  readonly sort: (typeof SORTS)[number]
  readonly isRising: boolean
}

/** Where a page ends. */
export interface LibraryPosition {
  readonly key: string | number
  readonly id: string
}

export interface LibraryPaging extends LibraryOrder {
  readonly limit: number
  readonly offset: number
  readonly after: LibraryPosition | null
}

export interface LibraryPage {
  readonly entries: readonly LibraryEntry[]
  readonly total: number
  /** null: this was the last page. */
  readonly next: LibraryPosition | null
}

export function fits(entry: LibraryEntry, filter: LibraryFilter): boolean {
  const { allTags, anyTags, noTags, nameContains, metadata, named } = filter
  const has = (tag: string) => entry.tags.includes(tag)
  return (
    allTags.every(has) &&
    (anyTags.length === 0 || anyTags.some(has)) &&
    !noTags.some(has) &&
    (nameContains === '' || entry.name.toLowerCase().includes(nameContains.toLowerCase())) &&
    (named === null || isNamed(entry, named)) &&
    fitsMetadata(entry.metadata, metadata)
  )
}

function isNamed({ hash, name, loaderPath }: LibraryEntry, wanted: string): boolean {
  return wanted === `blake3:${hash}` || wanted === hash || wanted === loaderPath || wanted === name
}

function fitsMetadata(text: string | null, wanted: LibraryFilter['metadata']): boolean {
  const members = Object.entries(wanted)
  if (members.length === 0) return true
  const known = text === null ? {} : (JSON.parse(text) as Record<string, unknown>)
  return members.every(([name, value]) => {
    const has = Object.hasOwn(known, name) ? known[name] : null
    const choices = Array.isArray(value) ? value : [value]
    return choices.some(
      (choice) => isSame(has, choice) || (Array.isArray(has) && has.some((one) => isSame(one, choice))),
    )
  })
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

/** When a file was last read is not kept: it is in the order of its making. */
function keyOf(entry: LibraryEntry, sort: LibraryOrder['sort']): string | number {
  if (sort === 'name') return entry.name
  if (sort === 'size') return entry.sizeBytes ?? 0
  return sort === 'updated_at' ? entry.changedAt.getTime() : entry.createdAt.getTime()
}

function compare(one: LibraryPosition, other: LibraryPosition): number {
  if (one.key !== other.key) return one.key < other.key ? -1 : 1
  return one.id === other.id ? 0 : one.id < other.id ? -1 : 1
}

export function toPage(found: readonly LibraryEntry[], paging: LibraryPaging): LibraryPage {
  const { sort, isRising, limit, offset, after } = paging
  const sign = isRising ? 1 : -1
  const placed = found
    .map((entry) => ({ entry, key: keyOf(entry, sort), id: entry.id }))
    .sort((one, other) => sign * compare(one, other))
  const behind = after === null ? placed : placed.filter((each) => sign * compare(each, after) > 0)
  const page = behind.slice(offset, offset + limit)
  const last = page.at(-1)
  const isLast = last === undefined || offset + page.length >= behind.length
  return {
    entries: page.map(({ entry }) => entry),
    total: found.length,
    next: isLast ? null : { key: last.key, id: last.id },
  }
}

export interface TagCount {
  readonly name: string
  readonly count: number
}

export function countTags(entries: readonly LibraryEntry[]): readonly TagCount[] {
  const counts = new Map<string, number>()
  for (const { tags } of entries) for (const tag of tags) counts.set(tag, (counts.get(tag) ?? 0) + 1)
  return [...counts].map(([name, count]) => ({ name, count }))
}
