import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Summary } from '../../../console/src/api/summary.ts'
import { backoffMs } from '../../../console/src/state/live/backoff.ts'
import { applyToBook, type BookChange, EMPTY_BOOK, forget, movedOn } from '../../../console/src/state/live/job-book.ts'
import {
  EMPTY_LIST,
  showFresh,
  takeArrival,
  takeFirstPage,
  takeFirstPageAgain,
  takeGone,
} from '../../../console/src/state/live/job-list.ts'
import { createSseReader } from '../../../console/src/state/live/read-sse.ts'
import { summary } from './summary.ts'

/** What a service did to its jobs, as the frames that it would send, and what is there in the end. */
const history = fc
  .array(fc.record({ job: fc.nat(5), kind: fc.constantFrom('change', 'change', 'change', 'remove') }), {
    maxLength: 60,
  })
  .map((moves) => {
    const there = new Map<string, Summary>()
    const gone = new Set<string>()
    const frames: BookChange[] = []
    for (const { job, kind } of moves) {
      const id = `job-${job}`
      if (gone.has(id)) continue
      if (kind === 'remove') {
        there.delete(id)
        gone.add(id)
        frames.push({ kind: 'gone', id })
      } else {
        const next = summary({ id, version: (there.get(id)?.version ?? 0) + 1 })
        there.set(id, next)
        frames.push({ kind: 'job', job: next })
      }
    }
    return { frames, end: [...there.values()] }
  })

test('any order, loss and repetition of frames ends in the snapshot', () => {
  fc.assert(
    fc.property(
      history.chain(({ frames, end }) =>
        fc.record({
          end: fc.constant(end),
          before: fc.shuffledSubarray(frames),
          repeated: fc.subarray(frames),
          after: fc.shuffledSubarray(frames),
        }),
      ),
      ({ end, before, repeated, after }) => {
        const snapshot: BookChange = { kind: 'snapshot', jobs: end, isComplete: true }
        const book = applyToBook(applyToBook(EMPTY_BOOK, [...before, ...repeated, snapshot]), after)
        const shown = new Map([...book.jobs].filter(([id]) => end.some((job) => job.id === id)))
        assert.deepEqual(new Map([...shown].sort()), new Map(end.map((job) => [job.id, job] as const).sort()))
      },
    ),
    { numRuns: 500 },
  )
})

test('whoever missed that a job ended learns it from the list of what runs, and keeps what the stream said meanwhile', () => {
  const running = (id: string, version: number) => summary({ id, version, status: 'running' })
  const jobs = [running('a', 1), running('b', 1), running('c', 1)]
  const asked = applyToBook(
    EMPTY_BOOK,
    jobs.map((job) => ({ kind: 'job', job })),
  )
  const now = applyToBook(asked, [{ kind: 'job', job: running('b', 2) }])
  const left = movedOn({ asked, now, statuses: ['running'], answered: [running('a', 1)] })
  assert.deepEqual(left, ['c'])
  assert.deepEqual([...forget(now, left).jobs.keys()].sort(), ['a', 'b'])
})

test('a list at its top takes new rows at once; one that is looked at keeps them aside until they are asked for', () => {
  const first = takeFirstPage([summary({ id: 'b' }), summary({ id: 'a' })], null)
  const arrive = (id: string, isSteady: boolean) => ({ id, fits: 'yes' as const, isSteady, isAppended: false })
  assert.deepEqual(takeArrival(first, arrive('c', false)).rows, ['c', 'b', 'a'])
  const steady = takeArrival(takeArrival(first, arrive('c', true)), arrive('d', true))
  assert.deepEqual(
    [steady.rows, steady.fresh],
    [
      ['b', 'a'],
      ['d', 'c'],
    ],
  )
  assert.deepEqual(takeArrival(steady, arrive('d', true)), steady)
  assert.deepEqual(showFresh(steady).rows, ['d', 'c', 'b', 'a'])
})

test('a row that no longer fits stays where it is, greyed, and one that is gone too', () => {
  const first = takeFirstPage([summary({ id: 'b' }), summary({ id: 'a' })], null)
  const left = takeArrival(first, { id: 'a', fits: 'no', isSteady: false, isAppended: false })
  assert.deepEqual([left.rows, [...left.stale]], [['b', 'a'], ['a']])
  assert.deepEqual([...takeGone(left, 'b').stale], ['a', 'b'])
})

test('the first page asked again moves no row and shows none twice', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.nat(20).map(String)),
      fc.uniqueArray(fc.nat(20).map(String)),
      fc.boolean(),
      (before, page, isSteady) => {
        const list = takeFirstPage(
          before.map((id) => summary({ id })),
          null,
        )
        const next = takeFirstPageAgain(
          list,
          page.map((id) => summary({ id })),
          isSteady,
        )
        assert.equal(new Set(next.rows).size, next.rows.length)
        assert.deepEqual(
          next.rows.filter((id) => before.includes(id)),
          before,
        )
        if (isSteady) assert.deepEqual(next.rows, before)
      },
    ),
  )
  assert.deepEqual(takeFirstPageAgain(EMPTY_LIST, [], false).rows, [])
})

test('frames are the same however their text is cut', () => {
  const text = 'event: hello\ndata: {"a":1}\n\n: a sign of life\n\nevent: job\r\ndata: one\r\ndata: two\r\n\r\n'
  fc.assert(
    fc.property(fc.array(fc.nat(text.length)), (cuts) => {
      const read = createSseReader()
      const edges = [0, ...cuts.toSorted((a, b) => a - b), text.length]
      const frames = edges.slice(1).flatMap((end, index) => read(text.slice(edges[index], end)))
      assert.deepEqual(frames, [
        { event: 'hello', data: '{"a":1}' },
        { event: 'job', data: 'one\ntwo' },
      ])
    }),
  )
})

test('tries to come back after 1, 2, 4 … 30 s, give or take a fifth', () => {
  assert.deepEqual(
    [0, 1, 2, 3, 4, 5, 50].map((failures) => backoffMs(failures, 0.5)),
    [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000],
  )
  assert.deepEqual([backoffMs(0, 0), backoffMs(0, 1)], [800, 1200])
})
