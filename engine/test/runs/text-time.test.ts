/** Nodes for text, patterns and formulas: whatever they are given, each call takes a few seconds of processor time at most. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type GraphJson, lastOf, openTestEngine, outline, texts } from '../support/harness.ts'

const show = (id: string) => ({ class_type: 'PreviewAny', inputs: { source: [id, 0] } })
const flags = { case_insensitive: false, multiline: false, dotall: false }
const NEARLY = `${'a'.repeat(5000)}!`

/** Small graphs that would compute for minutes or years. */
const ENDLESS: Readonly<Record<string, GraphJson[string]>> = {
  'a pattern with nested repeats': {
    class_type: 'RegexMatch',
    inputs: { string: NEARLY, regex_pattern: '(a+)+$', ...flags },
  },
  'a long text that is written out again and again, and never shown': {
    class_type: 'StringFormat',
    inputs: { 'values.a': 'x'.repeat(500_000), f_string: '{a!r:.0}'.repeat(50_000) },
  },
  'a loop that never looks up': { class_type: 'TestBusyText', inputs: { where: 'compute' } },
}

test('a text node that would take for ever fails after a few seconds of processor time, and says what to do', async () => {
  await using engine = await openTestEngine({ threads: 2 })
  const runs = Object.entries(ENDLESS).map(async ([what, node]) => {
    const { failure } = lastOf(await engine.run({ 1: node, 2: show('1') }), 'failed')
    assert.deepEqual(
      [failure.exceptionType, failure.nodeId, failure.classType],
      ['TimeoutError', '1', node.class_type],
      what,
    )
    assert.equal(
      failure.message,
      `${node.class_type} used more than 3 s of processor time, the most that it may take; use a simpler expression or a shorter text`,
    )
  })
  await Promise.all(runs)
  assert.deepEqual(
    texts(await engine.run({ 1: { class_type: 'PrimitiveString', inputs: { value: 'hi' } }, 2: show('1') }), '2'),
    ['hi'],
  )
})

/** What JavaScript's own search needs hours for, inside one call that nothing can end. */
test('a long text that nearly occurs everywhere is found, or not, in one pass', { timeout: 60_000 }, async () => {
  await using engine = await openTestEngine()
  const half = 'a'.repeat(500_000)
  const long = half + half + half
  const ask = async (class_type: string, inputs: Record<string, unknown>) =>
    texts(await engine.run({ 1: { class_type, inputs }, 2: show('1') }), '2')[0]
  const contains = (string: string, substring: string) =>
    ask('StringContains', { string, substring, case_sensitive: true })
  assert.equal(await contains(long, `${half}b${half}`), 'False')
  assert.equal(await contains(`${long}b${half}`, `${half}b${half}`), 'True')
  assert.equal(
    await ask('StringReplace', { string: `x${half}b${half}y`, find: `${half}b${half}`, replace: '-' }),
    'x-y',
  )
  assert.equal(await ask('StringReplace', { string: `x${half}y`, find: `${half}b`, replace: '-' }), `x${half}y`)
})

test('a cheap node that is called for each member of a long list lets others go on, and can be stopped', async () => {
  await using engine = await openTestEngine()
  const graph: GraphJson = {
    1: { class_type: 'TestList', inputs: { prefix: 'ab '.repeat(2600), count: 1500 } },
    2: { class_type: 'CaseConverter', inputs: { string: ['1', 0], mode: 'Title Case' } },
    3: { class_type: 'TestDump', inputs: { source: ['2', 0] } },
  }
  const abort = new AbortController()
  const isBusy = Promise.withResolvers<void>()
  const long = engine.run(graph, {
    signal: abort.signal,
    onEvent(event) {
      if (event.type === 'node_started' && event.nodeId === '2') isBusy.resolve()
    },
  })
  await isBusy.promise
  const short = await engine.run({ 1: { class_type: 'PrimitiveString', inputs: { value: 'hi' } }, 2: show('1') })
  assert.deepEqual(texts(short, '2'), ['hi'])
  abort.abort()
  assert.match(outline(await long), /interrupted$/)
})
