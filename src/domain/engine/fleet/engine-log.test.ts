import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEngineLog } from './fleet-engine.ts'

const clock = { now: () => new Date('2026-01-31T12:00:00Z') }

test('pieces become lines, and only the newest lines are kept, each of them bounded', () => {
  const log = createEngineLog(clock)
  log.hear('Loading ')
  log.hear('weights\nready\n 10%\r 20%\r\n')
  assert.deepEqual(
    log.lines().map(({ n, text }) => [n, text]),
    [
      [1, 'Loading weights'],
      [2, 'ready'],
      [3, ' 10%'],
      [4, ' 20%'],
    ],
  )
  for (let index = 0; index < 2000; index += 1) log.hear(`${'x'.repeat(5000)}\n`)
  assert.equal(log.lines().length, 1000)
  assert.equal(log.lines()[0]?.n, 1005)
  assert.equal(log.lines()[0]?.text.length, 2000)
})
