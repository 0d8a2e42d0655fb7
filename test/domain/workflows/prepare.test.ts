import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type JsonObject, type JsonValue, parseLosslessJson } from '../../../lib/json/lossless-json.ts'
import { createInspectWorkflow } from '../../../src/domain/workflows/prepare.ts'
import { catalog, MINE, NOW, nodeErrors, prepareWith, refusalOf, storeOf } from './prepare-rig.ts'

test('the digits of a number survive from the submit to the executed text', async () => {
  const { prepare } = prepareWith()
  const source = `{"1":{"class_type":"ImageAddNoise","inputs":{"image":["2",0],"seed":18446744073709551615,"strength":0.50}},
    "2":{"class_type":"EmptyImage","inputs":{"width":8,"height":8,"batch_size":1,"color":0},"_meta":{"title":"Blank \\u00e9"}},
    "3":{"class_type":"PreviewImage","inputs":{"images":["1",0],"big":12345678901234567890123}}}`
  const { text, graph } = await prepare(parseLosslessJson(source))
  assert.match(text, /"seed":18446744073709551615,"strength":0\.50/)
  assert.match(text, /"big":12345678901234567890123/)
  assert.match(text, /"_meta":\{"title":"Blank é"\}/)
  assert.equal(graph.get('1')?.inputs.seed, 18446744073709551615n)
})

test('one bad output of two refuses the workflow, naming every fault', async () => {
  const { prepare } = prepareWith()
  const error = await refusalOf(
    prepare({
      1: { class_type: 'EmptyImage', inputs: { width: 8, height: 8, batch_size: 1, color: 0 } },
      2: { class_type: 'PreviewImage', inputs: { images: ['1', 0] } },
      12: { class_type: 'ImageScale', inputs: { image: ['1', 0], width: -1, height: 8, crop: 'disabled' } },
      13: { class_type: 'PreviewImage', inputs: { images: ['12', 0] } },
    }),
  )
  assert.equal(error.message, 'Node 12 (ImageScale): required input upscale_method is missing (and 1 more)')
  assert.deepEqual(error.details, {
    node_errors: {
      12: [
        { field: 'upscale_method', reason: 'missing_input', message: 'required input upscale_method is missing' },
        { field: 'width', reason: 'value_smaller_than_min', message: 'input width: Value -1 smaller than min of 0' },
      ],
    },
  })
})

test('what is wrong with the whole workflow stands in the message', async () => {
  const { prepare } = prepareWith()
  const empty = await refusalOf(prepare({}))
  assert.equal(empty.message, 'Prompt has no outputs')
  assert.deepEqual(empty.details, { node_errors: {} })
  const unknown = await refusalOf(prepare({ 1: { class_type: 'Nope', inputs: {} } }))
  assert.match(unknown.message, /^Node 1 \(Nope\): /)
  const [item] = nodeErrors(unknown)[1]
  assert.equal(item.reason, 'missing_node_type')
})

test('an editor export is refused with advice, with and without last_node_id', async () => {
  const { prepare } = prepareWith()
  const withId: JsonObject = { nodes: [], links: [], last_node_id: 1 }
  const without: JsonObject = { nodes: [], links: [], version: 0.4 }
  for (const workflow of [withId, without]) {
    assert.equal((await refusalOf(prepare(workflow))).refusal, 'workflow_format_ui')
  }
})

test('a workflow that is missing or no graph is invalid', async () => {
  const { prepare } = prepareWith()
  const deep = parseLosslessJson(`{"1":{"class_type":"X","inputs":{"a":${'['.repeat(80)}${']'.repeat(80)}}}}`)
  const many = Object.fromEntries(Array.from({ length: 20_001 }, (_, index) => [`n${index}`, {}]))
  const wrong: (JsonValue | undefined)[] = [
    undefined,
    null,
    5,
    'text',
    [],
    { 1: null },
    { 1: [] },
    { 1: { class_type: 5, inputs: {} } },
    { 1: { class_type: 'SaveImage' } },
    { 1: { class_type: 'SaveImage', inputs: [] } },
    { ['x'.repeat(300)]: { class_type: 'SaveImage', inputs: {} } },
    deep,
    many,
    { 1: { class_type: 'PreviewAny', inputs: { source: 10n ** 5000n } } },
  ]
  for (const workflow of wrong) assert.equal((await refusalOf(prepare(workflow))).refusal, 'invalid_workflow')
})

test('inspection leaves partly valid workflows to its caller', async () => {
  const inspect = createInspectWorkflow({ catalog: () => catalog, assets: storeOf(), clock: { now: () => NOW } })
  const workflow = {
    1: { class_type: 'PreviewAny', inputs: { source: 1 } },
    2: { class_type: 'PreviewAny', inputs: {} },
  }
  const { result } = await inspect(MINE, workflow, { pool: 'default' })
  assert.deepEqual(result.goodOutputs, ['1'])
  assert.deepEqual(Object.keys(result.nodeErrors), ['2'])
  assert.deepEqual((await inspect(MINE, workflow, { pool: 'default', targets: ['1'] })).result.nodeErrors, {})
})
