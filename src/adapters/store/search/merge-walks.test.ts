import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededRandom } from '../../../../test/support/seeded-random.ts'
import { type MergedPage, mergeWalks, type PageKey, type Walk } from './merge-walks.ts'

const WHOLE = 1000

/** The entries of a range behind a key, as a store would walk them: `length` are looked at, and those that do not fit are left out. */
function walkRange(range: readonly PageKey[], { behind, length }: { behind: number; length: number }): Walk<PageKey> {
  const looked = range.filter(([at]) => at < behind).slice(0, length)
  const isCut = looked.length === length
  return { entries: looked.filter(([at]) => at % 3 !== 0), cutAt: isCut ? (looked.at(-1) ?? null) : null }
}

test('pages over many ranges hold every entry once and in order, however short the walks are', () => {
  const random = seededRandom(11)
  for (let round = 0; round < 200; round++) {
    const ranges = Array.from({ length: random.between(1, 8) }, () => {
      const times = new Set(Array.from({ length: random.between(0, 40) }, () => random.between(0, 60)))
      return [...times].sort((a, b) => b - a).map((at): PageKey => [at, `job ${at}`])
    })
    const expected = [...new Set(ranges.flat().map(([at]) => at))].filter((at) => at % 3 !== 0).sort((a, b) => b - a)
    const length = random.between(1, 6)
    const limit = random.between(1, 12)
    const found: number[] = []
    for (let behind: PageKey | null = [WHOLE, '']; behind !== null; ) {
      const from: number = behind[0]
      const page: MergedPage<PageKey> = mergeWalks(
        ranges.map((range) => walkRange(range, { behind: from, length })),
        {
          order: 'newest',
          limit,
          keyOf: (entry) => entry,
        },
      )
      assert.ok(page.entries.length <= limit)
      assert.ok(page.resumeAfter === null || page.resumeAfter[0] < from, 'a page goes on behind the one before')
      found.push(...page.entries.map(([at]) => at))
      behind = page.resumeAfter
    }
    assert.deepEqual(found, expected)
  }
})

test('a page ends where the first walk was cut', () => {
  const oldest = { order: 'oldest', limit: 10, keyOf: (entry: PageKey) => entry } as const
  const long: Walk<PageKey> = {
    entries: [
      [1, 'a'],
      [4, 'd'],
      [6, 'f'],
    ],
    cutAt: null,
  }
  const cut: Walk<PageKey> = {
    entries: [
      [2, 'b'],
      [4, 'd'],
    ],
    cutAt: [4, 'd'],
  }
  assert.deepEqual(mergeWalks([long, cut], oldest), {
    entries: [
      [1, 'a'],
      [2, 'b'],
      [4, 'd'],
    ],
    resumeAfter: [4, 'd'],
  })
  assert.deepEqual(mergeWalks([long], oldest), { entries: long.entries, resumeAfter: null })
})
