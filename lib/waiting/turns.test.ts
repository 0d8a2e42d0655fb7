import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createTurns, finishNow, inOneStep, type Work } from './turns.ts'

/** Every step takes one millisecond of a clock that only work advances. */
function createClock() {
  let nowMs = 0
  function* work(name: string, steps: number, told: string[] = []): Work<string> {
    for (let step = 0; step < steps; step++) {
      nowMs += 1
      told.push(name)
      yield
    }
    return name
  }
  return { nowMs: () => nowMs, work }
}

/** How many turns of the loop pass until it is done. */
async function countTurns(done: Promise<unknown>): Promise<number> {
  let isDone = false
  done.then(() => {
    isDone = true
  })
  let turns = 0
  for (await null; !isDone; await nextTurn()) turns++
  return turns
}

test('short work is done at once', async () => {
  const { nowMs, work } = createClock()
  const turns = createTurns({ sliceMs: 8, nowMs })
  const told: string[] = []
  const done = turns.run(work('a', 3, told))
  assert.equal(told.length, 3)
  assert.equal(await done, 'a')
})

test('long work lets the loop turn after every slice', async () => {
  const { nowMs, work } = createClock()
  const turns = createTurns({ sliceMs: 8, nowMs })
  assert.ok((await countTurns(turns.run(work('a', 800)))) >= 99)
})

test('many pieces of work together get one slice per turn, and are served in order', async () => {
  const { nowMs, work } = createClock()
  const turns = createTurns({ sliceMs: 8, nowMs })
  const told: string[] = []
  const all = ['a', 'b', 'c'].map((name) => turns.run(work(name, 16, told)))
  let mostInATurn = told.length
  for (let before = told.length; told.length < 48; before = told.length) {
    await nextTurn()
    mostInATurn = Math.max(mostInATurn, told.length - before)
  }
  assert.deepEqual(await Promise.all(all), ['a', 'b', 'c'])
  assert.ok(mostInATurn <= 8, `${mostInATurn} steps in one turn`)
  assert.equal(told.join(''), 'aaaaaaaaaaaaaaaabbbbbbbbccccccccbbbbbbbbcccccccc')
})

test('many short pieces of work share the slice of a turn as well', async () => {
  let nowMs = 0
  const turns = createTurns({ sliceMs: 8, nowMs: () => nowMs })
  const all = Array.from({ length: 80 }, () => turns.run(inOneStep(() => ++nowMs)))
  assert.equal(nowMs, 8)
  assert.ok((await countTurns(Promise.all(all))) >= 9)
})

test('work that throws rejects and does not hold up other work', async () => {
  const { nowMs, work } = createClock()
  const turns = createTurns({ sliceMs: 2, nowMs })
  const failing = turns.run(
    inOneStep(() => {
      throw new Error('broken')
    }),
  )
  await assert.rejects(failing, /broken/)
  assert.equal(await turns.run(work('a', 9)), 'a')
  assert.equal(finishNow(work('b', 9)), 'b')
})
