import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { MoveOrder } from '../../../src/adapters/bus/wire-bus.ts'
import type { JobChanged, JobMove } from '../../../src/domain/events/event-bus.ts'

const about = (move: JobMove, version = 1, jobId = 'job'): JobChanged => ({ jobId, accountId: 'ada', version, move })

function open() {
  mock.timers.enable({ apis: ['setTimeout'] })
  const heard: string[] = []
  const state = { isOpen: true, isArriving: false }
  const link = { isOpen: () => state.isOpen, isArriving: () => state.isArriving }
  const order = new MoveOrder({
    deliver: ({ jobId, version, move }) => heard.push(`${jobId} ${version} ${move ?? ''}`.trim()),
  })
  // In steps: a timer that is set while time passes counts from the end of the step.
  const pass = (ms: number) => {
    for (let passed = 0; passed < ms; passed += 100) mock.timers.tick(100)
  }
  return { order, heard, link, state, pass, [Symbol.dispose]: () => mock.timers.reset() }
}

test('the end of a run waits for its link as long as that is open, and everybody may read the job at once', () => {
  using rig = open()
  rig.order.byMedium(about('ended', 3), rig.link)
  assert.deepEqual(rig.heard, ['job 3'])
  rig.pass(4000)
  assert.deepEqual(rig.heard, ['job 3'])
  rig.order.byLink(about('ended', 3), 0)
  rig.order.byMedium(about('ended', 3), rig.link)
  rig.pass(60_000)
  assert.deepEqual(rig.heard, ['job 3', 'job 3 ended'])
})

test('it does not wait for a link that is closed, or for ever', () => {
  using rig = open()
  rig.order.byMedium(about('ended', 3), rig.link)
  rig.state.isOpen = false
  rig.pass(500)
  assert.deepEqual(rig.heard.splice(0), ['job 3', 'job 3 ended'])
  rig.state.isOpen = true
  rig.order.byMedium(about('ended', 4, 'slow'), rig.link)
  rig.pass(5000)
  assert.deepEqual(rig.heard.splice(0), ['slow 4', 'slow 4 ended'])
  rig.state.isArriving = true
  rig.order.byMedium(about('ended', 5, 'large'), rig.link)
  rig.pass(29_500)
  assert.deepEqual(rig.heard, ['large 5'])
  rig.pass(500)
  assert.deepEqual(rig.heard, ['large 5', 'large 5 ended'])
})

test('what begins something does not wait, unless something of its job does', () => {
  using rig = open()
  for (const move of ['queued', 'taken'] as const) rig.order.byMedium(about(move), rig.link)
  assert.deepEqual(rig.heard.splice(0), ['job 1 queued', 'job 1 taken'])
  rig.order.byMedium(about('returned', 2), rig.link)
  rig.order.byMedium(about('taken', 3), rig.link)
  assert.deepEqual(rig.heard.splice(0), ['job 2', 'job 3'])
  rig.order.release()
  assert.deepEqual(rig.heard, ['job 2 returned', 'job 3 taken'])
})

test('a move that comes late over a link is one if somebody waits for it, and otherwise only a version', () => {
  using rig = open()
  rig.order.byMedium(about('ended', 3), rig.link)
  rig.order.byLink(about('ended', 3), 2500)
  rig.order.byLink(about('ended', 3, 'of long ago'), 2500)
  assert.deepEqual(rig.heard, ['job 3', 'job 3 ended', 'of long ago 3'])
})
