import assert from 'node:assert/strict'
import { mock, test } from 'node:test'

// The modules of the page look at its document when they are loaded.
Object.assign(globalThis, { document: { querySelector: () => null } })
const { createEntry } = await import('../../../console/src/state/resource.ts')

/** A service whose answers come when the test says so. */
function askedBy<Value>() {
  const questions: { readonly signal: AbortSignal; answer(value: Value): void }[] = []
  const load = (signal: AbortSignal) => {
    const { promise, resolve } = Promise.withResolvers<Value>()
    questions.push({ signal, answer: resolve })
    return promise
  }
  return { questions, load }
}

const settle = () => new Promise((resolve) => setImmediate(resolve))

test('a question that is asked again and again while its answer is on its way is answered, and asked once more', async () => {
  const { questions, load } = askedBy<string>()
  const entry = createEntry<string>()
  entry.begin(load)
  for (let time = 0; time < 5; time++) entry.reload()
  assert.equal(questions.length, 1)
  assert.equal(questions[0]?.signal.aborted, false)
  questions[0]?.answer('older')
  await settle()
  assert.equal(entry.data.value, 'older')
  assert.equal(questions.length, 2)
  questions[1]?.answer('newer')
  await settle()
  assert.equal(entry.data.value, 'newer')
  assert.equal(questions.length, 2)
})

test('a question without an answer for half a minute is given up when it is asked again', async () => {
  const clock = mock.method(performance, 'now', () => 0)
  const { questions, load } = askedBy<string>()
  const entry = createEntry<string>()
  entry.begin(load)
  clock.mock.mockImplementation(() => 30_000)
  entry.reload()
  clock.mock.restore()
  assert.equal(questions[0]?.signal.aborted, true)
  questions[1]?.answer('of the second')
  questions[0]?.answer('of the first')
  await settle()
  assert.equal(entry.data.value, 'of the second')
})

test('nothing is asked again for a page that has left', async () => {
  const { questions, load } = askedBy<string>()
  const entry = createEntry<string>()
  entry.begin(load)
  entry.reload()
  entry.end()
  questions[0]?.answer('too late')
  await settle()
  assert.equal(entry.data.value, null)
  assert.equal(questions.length, 1)
})
