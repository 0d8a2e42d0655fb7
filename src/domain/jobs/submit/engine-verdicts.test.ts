import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createEngineVerdicts } from './submit-refusals.ts'

const BOUNDS = { claimWithinMs: 10, roomWithinMs: 1_000_000, answerWithinMs: 50 }
const REFUSAL = { failure: { code: 'invalid_workflow' } } as never

function open(context: TestContext, roomWithinMs = BOUNDS.roomWithinMs) {
  context.mock.timers.enable({ apis: ['setTimeout'] })
  const verdicts = createEngineVerdicts({ ...BOUNDS, roomWithinMs })
  const room = { isComing: false }
  const expected = verdicts.expect('job', () => room.isComing)
  const answered = { is: false }
  /** As the submit does once the job is recorded. */
  const answer = () =>
    expected.answer().then((refusal) => {
      answered.is = true
      return refusal
    })
  return { verdicts, room, answer, answered, timers: context.mock.timers }
}

test('a submit waits for a slot that is about to be free, and hears the refusal of its engine', async (context) => {
  const { verdicts, room, answer, answered, timers } = open(context)
  room.isComing = true
  const refusal = answer()
  for (let step = 0; step < 5; step += 1) timers.tick(10)
  await Promise.resolve()
  assert.equal(answered.is, false)
  verdicts.asked('job')
  verdicts.refused('job', REFUSAL)
  assert.equal(await refusal, REFUSAL)
})

test('it waits no longer than a moment for a slot that is free and not given to it', async (context) => {
  const { answer, timers } = open(context)
  const refusal = answer()
  timers.tick(10)
  assert.equal(await refusal, null)
})

test('nor without end for one that is always about to be free', async (context) => {
  const { room, answer, timers } = open(context, 0)
  room.isComing = true
  const refusal = answer()
  timers.tick(10)
  assert.equal(await refusal, null)
})

test('how long the record takes does not count, and an engine that was asked before it is waited for', async (context) => {
  const { verdicts, answer, answered, timers } = open(context)
  timers.tick(10_000)
  verdicts.asked('job')
  const refusal = answer()
  timers.tick(40)
  await Promise.resolve()
  assert.equal(answered.is, false)
  timers.tick(10)
  assert.equal(await refusal, null)
})
