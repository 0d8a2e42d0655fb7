import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FramePacer } from './job-frames.ts'

function createPaced() {
  const time = { now: 0 }
  const encoded: string[] = []
  const pacer = new FramePacer(
    () => time.now,
    (text: string) => {
      encoded.push(text)
      return Buffer.from(text)
    },
  )
  return { time, encoded, pacer, take: () => pacer.take()?.toString() ?? null }
}

test('two frames pass at once, later ones every half second, and only the newest', () => {
  const { time, encoded, pacer, take } = createPaced()
  assert.equal(take(), null)
  for (const text of ['a', 'b']) {
    pacer.offer(text)
    assert.equal(take(), text)
  }
  pacer.offer('c')
  pacer.offer('d')
  time.now = 499
  assert.equal(take(), null)
  assert.equal(pacer.dueInMs(), 1)
  time.now = 500
  assert.equal(take(), 'd')
  assert.equal(pacer.dueInMs(), null)
  assert.equal(String(pacer.newest()), 'd')
  assert.deepEqual(encoded, ['a', 'b', 'd'])
})

test('one that came late holds up none of those after it, and neither does the moment of the first one', () => {
  const { time, pacer, take } = createPaced()
  // A reader that came in the middle was shown what there was; then come frames every half second, one of them late.
  const arrivals = [60, 500, 1000, 1500, 2300, 2500, 3000, 3490, 4000, 4500]
  for (const at of arrivals) {
    time.now = at
    pacer.offer(`${at}`)
    assert.equal(take(), `${at}`)
  }
})

test('no more than two a second pass in the long run', () => {
  const { time, pacer, take } = createPaced()
  let passed = 0
  for (time.now = 0; time.now < 10_000; time.now += 10) {
    pacer.offer(`${time.now}`)
    if (take() !== null) passed++
  }
  assert.equal(passed, 21)
})
