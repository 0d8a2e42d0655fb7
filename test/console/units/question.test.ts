import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createQuestion } from '../../../console/src/state/question.ts'

/** A service whose answers come when the test says so. */
function openQuestion(now: () => number = () => 0) {
  const put: { readonly signal: AbortSignal; answer(text: string): void }[] = []
  const shown: string[] = []
  const question = createQuestion(async (signal) => {
    const { promise, resolve } = Promise.withResolvers<string>()
    put.push({ signal, answer: resolve })
    const text = await promise
    if (!signal.aborted) shown.push(text)
  }, now)
  return { put, shown, question }
}

const settle = () => new Promise((resolve) => setImmediate(resolve))

test('a question that is asked again and again while its answer is on its way is answered, and put once more', async () => {
  const { put, shown, question } = openQuestion()
  question.ask()
  for (let time = 0; time < 5; time++) question.askAgain()
  assert.equal(put.length, 1)
  put[0]?.answer('older')
  await settle()
  assert.deepEqual(shown, ['older'])
  assert.equal(put.length, 2)
  put[1]?.answer('newer')
  await settle()
  assert.deepEqual(shown, ['older', 'newer'])
  assert.equal(put.length, 2)
})

test('an answer that is not there after half a minute is given up when it is asked for again', async () => {
  let now = 0
  const { put, shown, question } = openQuestion(() => now)
  question.ask()
  now = 30_000
  question.askAgain()
  assert.equal(put[0]?.signal.aborted, true)
  put[1]?.answer('of the second')
  put[0]?.answer('of the first')
  await settle()
  assert.deepEqual(shown, ['of the second'])
  assert.equal(put.length, 2)
})

test('a question that was given up is not put again', async () => {
  const { put, shown, question } = openQuestion()
  question.ask()
  question.askAgain()
  question.giveUp()
  put[0]?.answer('too late')
  await settle()
  assert.deepEqual(shown, [])
  assert.equal(put.length, 1)
})
