import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Summary } from '../../../console/src/api/summary.ts'
import {
  addWaiting,
  applyToBook,
  type BookChange,
  EMPTY_BOOK,
  forget,
  type JobBook,
  movedOn,
  type WaitingChanges,
} from '../../../console/src/state/live/job-book.ts'
import {
  showFresh,
  takeArrival,
  takeFirstPage,
  takeFirstPageAgain,
  takeGone,
  takeNextPage,
} from '../../../console/src/state/live/job-list.ts'
import { createSseReader, type Greeting, renewGreeting, retryMs } from '../../../console/src/state/live/stream-rules.ts'
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

/** How a page learns the truth after a time of bad frames: it asks for the states that move, and forgets who left them unheard. */
function askAgain(book: JobBook, end: readonly Summary[]): JobBook {
  const now = applyToBook(book, [{ kind: 'snapshot', jobs: end }])
  return forget(now, movedOn({ asked: book, now: book, statuses: ['queued'], answered: end }))
}

test('any order, loss and repetition of frames ends in the snapshot: nothing is old, and nothing is there that is not', () => {
  fc.assert(
    fc.property(
      history.chain(({ frames, end }) =>
        fc.record({
          end: fc.constant(end),
          before: fc.shuffledSubarray(frames),
          repeated: fc.subarray(frames),
          after: fc.shuffledSubarray(frames.filter((frame) => frame.kind === 'gone' || !isEndless(frame, end))),
        }),
      ),
      ({ end, before, repeated, after }) => {
        const asked = askAgain(applyToBook(EMPTY_BOOK, [...before, ...repeated]), end)
        const wanted = new Map(end.map((job) => [job.id, job] as const).sort())
        assert.deepEqual(new Map([...asked.jobs].sort()), wanted)
        // Late frames of jobs that are there are older than what is known; late news that a job is gone change nothing.
        assert.deepEqual(new Map([...applyToBook(asked, after).jobs].sort()), wanted)
      },
    ),
    { numRuns: 500 },
  )
})

/** A late frame of a job that was removed, without the word that it was: only the next question tells. */
function isEndless(frame: BookChange, end: readonly Summary[]): boolean {
  return frame.kind === 'job' && !end.some(({ id }) => id === frame.job.id)
}

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

/** Made one second after another, in the order of their numbers. */
function made(number: number): Summary {
  return summary({ id: `job-${number}`, created_at: new Date(Date.UTC(2026, 10, 16, 10, 0, number)).toISOString() })
}

const newest = (...numbers: readonly number[]) => numbers.map(made)
const ids = (...numbers: readonly number[]) => numbers.map((number) => `job-${number}`)

test('a list at its top takes new rows at once; one that is looked at keeps them aside until they are asked for', () => {
  const first = takeFirstPage(newest(2, 1), null)
  const arrive = (number: number, isSteady: boolean) => ({ job: made(number), fits: 'yes' as const, isSteady })
  assert.deepEqual(takeArrival(first, arrive(3, false)).rows, ids(3, 2, 1))
  const steady = takeArrival(takeArrival(first, arrive(3, true)), arrive(4, true))
  assert.deepEqual([steady.rows, steady.fresh], [ids(2, 1), ids(4, 3)])
  assert.deepEqual(takeArrival(steady, arrive(4, true)), steady)
  assert.deepEqual(showFresh(steady).rows, ids(4, 3, 2, 1))
})

test('an old job that begins to fit stands where the service would put it, or comes with a later page', () => {
  const arrive = (number: number, isSteady = false) => ({ job: made(number), fits: 'yes' as const, isSteady })
  const part = takeFirstPage(newest(9, 7, 5), 'more')
  assert.equal(takeArrival(part, arrive(3)), part)
  assert.deepEqual(takeArrival(part, arrive(6)).rows, ids(9, 7, 6, 5))
  assert.deepEqual(takeArrival(part, arrive(6, true)).fresh, ids(6))
  assert.deepEqual(takeNextPage(takeArrival(part, arrive(6)), newest(4, 3), null).rows, ids(9, 7, 6, 5, 4, 3))
  const whole = takeFirstPage(newest(9, 7, 5), null)
  assert.deepEqual(takeArrival(whole, arrive(3)).rows, ids(9, 7, 5, 3))
  const oldest = takeFirstPage(newest(1, 2), null, 'oldest')
  assert.deepEqual(takeArrival(oldest, arrive(3, true)).rows, ids(1, 2, 3))
})

test('a row that no longer fits stays where it is, greyed, and one that is gone too', () => {
  const first = takeFirstPage(newest(2, 1), null)
  const left = takeArrival(first, { job: made(1), fits: 'no', isSteady: false })
  assert.deepEqual([left.rows, [...left.stale]], [ids(2, 1), ids(1)])
  assert.deepEqual([...takeGone(left, 'job-2').stale], ids(1, 2))
})

const someNumbers = fc.uniqueArray(fc.nat(40)).map((numbers) => numbers.sort((a, b) => b - a))

test('the first page asked again moves no row, shows none twice and keeps the order', () => {
  fc.assert(
    fc.property(someNumbers, someNumbers, fc.boolean(), (before, page, isSteady) => {
      const list = takeFirstPage(before.map(made), null)
      const next = takeFirstPageAgain(list, { jobs: page.map(made), cursor: null, isSteady })
      assert.equal(new Set(next.rows).size, next.rows.length)
      assert.deepEqual(
        next.rows.filter((id) => list.rows.includes(id)),
        list.rows,
      )
      if (isSteady && before.length > 0) assert.deepEqual(next.rows, list.rows)
      const all = [...new Set([...before, ...page])].sort((a, b) => b - a)
      assert.deepEqual(showFresh(next).rows, ids(...all))
    }),
  )
})

test('after more new jobs than a page holds the list begins again, so that there is no hole in it', () => {
  const list = takeFirstPage(newest(5, 4, 3), 'old')
  const again = takeFirstPageAgain(list, { jobs: newest(20, 19, 18), cursor: 'new', isSteady: true })
  assert.deepEqual([again.rows, again.cursor], [ids(20, 19, 18), 'new'])
  const met = takeFirstPageAgain(list, { jobs: newest(7, 6, 5), cursor: 'new', isSteady: false })
  assert.deepEqual([met.rows, met.cursor], [ids(7, 6, 5, 4, 3), 'old'])
})

test('of the jobs that waited, those that should be on the first page and are not have moved on', () => {
  const asked = applyToBook(EMPTY_BOOK, [{ kind: 'snapshot', jobs: newest(1, 2, 3, 9) }])
  const options = { asked, now: asked, statuses: ['queued'] as const, answered: newest(1, 3, 4) }
  assert.deepEqual(movedOn({ ...options, more: 'oldest' }), ids(2))
  assert.deepEqual(movedOn({ ...options, more: 'newest', answered: newest(9, 4, 3) }), [])
  assert.deepEqual(movedOn({ ...options, more: null }), ids(2, 9))
})

test('a row on the screen keeps its job, however many others are heard of', () => {
  const jobs = Array.from({ length: 6000 }, (_, index) => made(index))
  const book = applyToBook(EMPTY_BOOK, [{ kind: 'snapshot', jobs }], (id) => id === 'job-0')
  assert.equal(book.jobs.size, 5000)
  assert.ok(book.jobs.has('job-0') && !book.jobs.has('job-1') && book.jobs.has('job-5999'))
})

test('a paused page keeps one change for each job, and that it is gone stays', () => {
  const waiting: WaitingChanges = new Map()
  const job = (version: number) => ({ kind: 'job' as const, job: summary({ id: 'a', version }) })
  for (const version of [1, 3, 2]) assert.ok(addWaiting(waiting, job(version)))
  assert.deepEqual([...waiting.values()], [job(3)])
  addWaiting(waiting, { kind: 'gone', id: 'a' })
  addWaiting(waiting, job(4))
  assert.deepEqual([...waiting.values()], [{ kind: 'gone', id: 'a' }])
  for (let number = 1; number < 5000; number++) addWaiting(waiting, { kind: 'job', job: made(number) })
  assert.ok(!addWaiting(waiting, { kind: 'job', job: made(5000) }))
})

test('a tab that opens later is greeted with what is true then', () => {
  const counts = (queued: number) => ({
    ...{ queued, running: 0, canceling: 0, succeeded: 0, failed: 0, canceled: 0, expired: 0 },
  })
  const hello = { build: 'one', now: '2026-11-16T10:00:00.000Z', counts: counts(1) }
  const frames = [
    { event: 'counts', data: JSON.stringify(counts(9)) },
    { event: 'hello', data: JSON.stringify(hello) },
    { event: 'job', data: '{}' },
    { event: 'counts', data: JSON.stringify(counts(2)) },
    { event: 'notice', data: JSON.stringify({ kind: 'drain' }) },
    { event: 'notice', data: JSON.stringify({ kind: 'build', build: 'two' }) },
  ]
  assert.deepEqual(frames.reduce<Greeting | null>(renewGreeting, null), { ...hello, build: 'two', counts: counts(2) })
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

test('asks a service that refuses after 1, 2, 4 … 30 s, and one that is away every three seconds, give or take a fifth', () => {
  const waits = (error: Parameters<typeof retryMs>[0]) =>
    [0, 1, 2, 3, 4, 5, 50].map((failures) => retryMs(error, failures, 0.5))
  const refused = { status: 500, retryAfterSeconds: null }
  assert.deepEqual(waits(refused), [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000])
  for (const away of [null, { ...refused, status: null }, { ...refused, status: 503 }])
    assert.deepEqual(waits(away), [1000, 2000, 3000, 3000, 3000, 3000, 3000])
  assert.deepEqual([retryMs(refused, 0, 0), retryMs(refused, 0, 1), retryMs(null, 50, 1)], [800, 1200, 3600])
  assert.equal(retryMs({ status: 503, retryAfterSeconds: 20 }, 0), 20_000)
})
