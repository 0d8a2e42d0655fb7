/** What an account's stream holds and how it finds back after something could not be read. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { silentLog } from '../../../../lib/log.ts'
import { createManualTicker } from '../../../../test/support/manual-ticker.ts'
import type { JobChanged } from '../../../domain/events/event-bus.ts'
import type { JobSummary, SummaryStore } from '../../../domain/jobs/summaries/summary-store.ts'
import { toSummaryView } from '../jobs/job-view.ts'
import type { EventStream } from './sse.ts'
import { SummaryFeed } from './summary-feed.ts'

const START = new Date('2026-01-31T12:00:00Z')

function summaryOf(id: string, status: JobSummary['status'], version = 1): JobSummary {
  return {
    ...{
      id,
      accountId: 'account',
      version,
      status,
      title: id,
      pool: 'default',
      engineId: null,
      priority: 0,
      attempt: 0,
      createdAt: START,
    },
    ...{ startedAt: null, completedAt: null, expiresAt: START, progress: null, error: null, charged: null, outputs: 0 },
    ...{ thumb: null, queuePosition: null, reusedFrom: null, notBefore: null, queueUntil: null, metadata: {} },
  }
}

/** Jobs in the order of their age, in a store that may be away. */
function openFeed(jobs: JobSummary[]) {
  const ticker = createManualTicker()
  const state = { isAway: false, beforeSearch: async () => {} }
  let change: (notice: JobChanged) => void = () => {}
  let gap: () => void = () => {}
  const mustBeThere = () => {
    if (state.isAway) throw new Error('away')
  }
  const summaries: Pick<SummaryStore, 'search' | 'findMany' | 'count'> = {
    async search(_account, { filter, order, limit }) {
      mustBeThere()
      const fitting = jobs.filter(({ status }) => filter.statuses?.includes(status))
      await state.beforeSearch()
      const sorted = order === 'oldest' ? fitting : fitting.reverse()
      const next = sorted.length > limit ? { createdAt: START, id: 'next' } : null
      return { summaries: sorted.slice(0, limit), next }
    },
    async findMany(_account, ids) {
      mustBeThere()
      return jobs.filter(({ id }) => ids.includes(id))
    },
    async count() {
      mustBeThere()
      const queued = jobs.filter(({ status }) => status === 'queued').length
      return { queued, running: 0, canceling: 0, succeeded: 0, failed: 0, canceled: 0, expired: 0 }
    },
  }
  const feed = new SummaryFeed({
    ...{ scope: 'a', toView: toSummaryView, summaries, buildId: () => null, now: () => START, ticker, log: silentLog },
    bus: {
      hasOthers: false,
      onChanged(listener) {
        change = listener
        return () => {}
      },
      onDirectory: () => () => {},
      onGap(listener) {
        gap = () => listener()
        return () => {}
      },
    },
  })
  const heard: string[] = []
  const stream = {
    send(bytes: Buffer) {
      for (const [, event, data] of bytes.toString().matchAll(/event: (\w+)\ndata: (.*)\n/g)) {
        const { id = '', status = '' } = JSON.parse(data ?? '')
        heard.push(`${event} ${id} ${status}`.trim())
      }
    },
  } as unknown as EventStream
  /** Lets time pass, and lets what it began come to its end. */
  async function pass(ms: number): Promise<void> {
    ticker.advance(ms)
    feed.tick()
    for (let turn = 0; turn < 5; turn += 1) await setImmediate()
  }
  const changed = (jobId: string) => change({ jobId, accountId: 'a', version: 1, move: 'dropped' })
  return { feed, stream, heard, state, jobs, pass, changed, gap: () => gap() }
}

test('what runs is told first, then what waits longest, and what comes next when one of those has begun', async () => {
  const jobs = Array.from({ length: 150 }, (_, index) => summaryOf(`w${index}`, 'queued'))
  const open = openFeed([summaryOf('r', 'running'), ...jobs])
  await open.feed.ready
  open.feed.join(open.stream)
  assert.deepEqual(open.heard.slice(0, 3), ['hello', 'job r running', 'job w0 queued'])
  assert.equal(open.heard.length, 22)
  open.heard.length = 0
  open.jobs[1] = summaryOf('w0', 'running', 2)
  open.changed('w0')
  await open.pass(1000)
  await open.pass(1000)
  await open.pass(1000)
  assert.ok(open.heard.includes('job w0 running'))
  assert.ok(open.heard.includes('job w20 queued'), open.heard.join())
})

test('after a gap in an outage everything is read again as soon as it can be', async () => {
  const open = openFeed([summaryOf('r', 'running')])
  await open.feed.ready
  open.feed.join(open.stream)
  open.heard.length = 0
  open.state.isAway = true
  open.gap()
  open.changed('r')
  await open.pass(2000)
  assert.equal(open.heard.length, 0)
  open.state.isAway = false
  await open.pass(2000)
  await open.pass(2000)
  assert.ok(open.heard.includes('hello'))
  assert.ok(open.heard.includes('counts'))
})

test('what changes while everything is read again is not told as it was before', async () => {
  const open = openFeed([summaryOf('r', 'running')])
  await open.feed.ready
  open.feed.join(open.stream)
  const held = Promise.withResolvers<void>()
  open.state.beforeSearch = () => held.promise
  await open.pass(2000)
  open.gap()
  open.jobs[0] = summaryOf('r', 'succeeded', 2)
  open.changed('r')
  await open.pass(1000)
  held.resolve()
  await open.pass(1000)
  await open.pass(1000)
  assert.equal(
    open.heard.findLast((frame) => frame.startsWith('job')),
    'job r succeeded',
  )
})

test('a job is told at the next look although others were told just before, and the same one four times a second', async () => {
  const open = openFeed([summaryOf('a', 'queued'), summaryOf('b', 'queued')])
  await open.feed.ready
  open.feed.join(open.stream)
  const change = (at: number, version: number) => {
    const id = open.jobs[at]?.id ?? ''
    open.jobs[at] = summaryOf(id, 'running', version)
    open.changed(id)
  }
  open.heard.length = 0
  const jobs = () => open.heard.filter((line) => line.startsWith('job'))
  change(0, 2)
  await open.pass(0)
  assert.deepEqual(jobs(), ['job a running'], 'at once')
  change(1, 2)
  change(0, 3)
  await open.pass(125)
  assert.deepEqual(jobs(), ['job a running', 'job b running'])
  await open.pass(125)
  assert.deepEqual(jobs(), ['job a running', 'job b running', 'job a running'])
})
