/** The text, logic and maths nodes in a real engine: laziness, files, and a pattern without end. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  bytesOf,
  dumped,
  type GraphJson,
  lastOf,
  openTestEngine,
  outline,
  reportOf,
  type TestEngine,
  texts,
} from '../support/harness.ts'

let engine: TestEngine
before(async () => {
  engine = await openTestEngine({ threads: 1 })
})
after(() => engine[Symbol.asyncDispose]())

function switchGraph(isOn: boolean): GraphJson {
  return {
    yes: { class_type: 'PrimitiveString', inputs: { value: 'yes' } },
    no: { class_type: 'ColorToRGBInt', inputs: { color: 'not a colour' } },
    choose: { class_type: 'ComfySwitchNode', inputs: { switch: isOn, on_true: ['yes', 0], on_false: ['no', 1] } },
    show: { class_type: 'PreviewAny', inputs: { source: ['choose', 0] } },
  }
}

test('a switch runs only the branch it chose, so that a failing other one does not matter', async () => {
  const events = await engine.run(switchGraph(true))
  assert.deepEqual(texts(events, 'show'), ['yes'])
  assert.ok(!outline(events).includes('no+'))
  assert.equal(lastOf(await engine.run(switchGraph(false)), 'failed').failure.exceptionType, 'ValueError')
})

test('a list of texts is mapped over, one call each', async () => {
  const events = await engine.run({
    list: { class_type: 'CreateList', inputs: { 'inputs.input0': ['one', 0], 'inputs.input1': ['two', 0] } },
    one: { class_type: 'PrimitiveString', inputs: { value: 'x' } },
    two: { class_type: 'PrimitiveString', inputs: { value: 'héé' } },
    length: { class_type: 'StringLength', inputs: { string: ['list', 0] } },
    dump: { class_type: 'TestDump', inputs: { source: ['length', 0] } },
  })
  assert.deepEqual(dumped(events, 'dump'), [
    { kind: 'int', value: 1 },
    { kind: 'int', value: 3 },
  ])
})

async function save(inputs: Record<string, unknown>) {
  const events = await engine.run({ save: { class_type: 'SaveText', inputs } })
  assert.equal(events.at(-1)?.type, 'succeeded', JSON.stringify(events.at(-1)))
  const [file] = reportOf(events, 'save', 'files')
  assert.ok(file.kind === 'file')
  return { file, text: (await bytesOf(file)).toString('utf8'), shown: texts(events, 'save') }
}

test('a saved text becomes a numbered file and is shown beside the node', async () => {
  const { file, text, shown } = await save({ text: 'héllo', filename_prefix: 'notes/%year%', format: 'md' })
  assert.deepEqual(
    { filename: file.filename, subfolder: file.subfolder, folder: file.folder, contentType: file.contentType },
    { filename: '2031_00001.md', subfolder: 'notes', folder: 'output', contentType: 'text/markdown' },
  )
  assert.equal(text, 'héllo')
  assert.deepEqual(shown, ['héllo'])
})

test('saved JSON is indented when it can be read, numbers and order of keys unchanged, and left alone when not', async () => {
  const json = '{"b":1.0,"2":18446744073709551615,"é":[]}'
  const { text } = await save({ text: json, filename_prefix: 'j', format: 'json' })
  assert.equal(text, '{\n  "b": 1.0,\n  "2": 18446744073709551615,\n  "é": []\n}')
  assert.equal((await save({ text: '{oops', filename_prefix: 'j', format: 'json' })).text, '{oops')
})

test('a save outside of the output folder is refused', async () => {
  const events = await engine.run({
    save: { class_type: 'SaveText', inputs: { text: 'x', filename_prefix: '../../x', format: 'txt' } },
  })
  assert.match(lastOf(events, 'failed').failure.message, /outside the output folder/)
})

test('a pattern that would take forever stops when the run is cancelled', async () => {
  const controller = new AbortController()
  const inputs = { string: `${'a'.repeat(60)}!`, regex_pattern: '(a+)+$', replace: '' }
  const graph = {
    slow: { class_type: 'RegexReplace', inputs },
    show: { class_type: 'PreviewAny', inputs: { source: ['slow', 0] } },
  }
  const events = await engine.run(graph, {
    signal: controller.signal,
    onEvent(event) {
      if (event.type === 'node_started' && event.nodeId === 'slow') controller.abort()
    },
  })
  assert.equal(events.at(-1)?.type, 'interrupted')
})
