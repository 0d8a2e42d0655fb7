/** What is known of runs while they last. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobLive } from '../../src/domain/events/event-bus.ts'
import type { LiveEvent } from '../../src/domain/events/live-event.ts'
import { createLiveRuns } from '../../src/domain/jobs/read/watch-job.ts'
import { createFixedClock } from '../support/fixed-clock.ts'

const JOB = { jobId: 'j', accountId: 'a' }
const STARTED: LiveEvent = { type: 'started', nodesTotal: 2 }
const log = (text: string): LiveEvent => ({ type: 'log', text })

function openRuns() {
  const listeners = new Set<(live: JobLive<LiveEvent>) => void>()
  const here = new Set<(live: JobLive<LiveEvent>) => void>()
  const bus = {
    hasOthers: true,
    onLive(topic: unknown, listener: (live: JobLive<LiveEvent>) => void) {
      const list = topic === 'published_here' ? here : listeners
      list.add(listener)
      return () => void list.delete(listener)
    },
  }
  const runs = createLiveRuns({ bus, clock: createFixedClock() })
  const tell = (isHere: boolean, ...events: LiveEvent[]) => {
    for (const event of events)
      for (const listener of [...(isHere ? here : []), ...listeners]) listener({ ...JOB, event })
  }
  return { runs, tell }
}

for (const isHere of [true, false]) {
  test(`a further attempt ${isHere ? 'here' : 'elsewhere'} begins its lines and nodes anew`, () => {
    const { runs, tell } = openRuns()
    const run = runs.follow('j')
    tell(isHere, STARTED, log('one\ntwo\n'))
    const first = run.now()
    tell(isHere, STARTED, log('three\n'))
    const second = run.now()
    assert.deepEqual(
      second.lines.map(({ n, text }) => [n, text]),
      [[0, 'three']],
    )
    assert.notEqual(first.key, second.key)
    tell(isHere, { type: 'succeeded' })
    assert.equal(run.now().key, second.key)
  })
}

test('lines are bounded by their length together', () => {
  const { runs, tell } = openRuns()
  const run = runs.follow('j')
  tell(false, STARTED)
  for (let index = 0; index < 1000; index += 1) tell(false, log(`${index} ${'x'.repeat(3000)}\n`))
  const { lines } = run.now()
  assert.ok(lines.reduce((sum, { text }) => sum + text.length, 0) <= 256 * 1024)
  assert.equal(lines.at(-1)?.n, 999)
  assert.equal(lines.at(-1)?.text.startsWith('999 '), true)
})

test('nodes are the same objects until they change', () => {
  const { runs, tell } = openRuns()
  const run = runs.follow('j')
  const node = (nodeId: string) => ({ nodeId, classType: 'K', displayNodeId: nodeId, parentNodeId: null })
  tell(false, STARTED, { type: 'node_started', ...node('1') })
  const { nodes: before } = run.now()
  assert.equal(run.now().nodes, before)
  tell(false, { type: 'node_started', ...node('2') })
  const { nodes: after } = run.now()
  assert.equal(after[0], before[0])
  assert.equal(after.length, 2)
})
