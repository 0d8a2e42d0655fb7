import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readGraph, writeGraph } from '../../../engine/graph/graph-json.ts'
import { validate } from '../../../engine/graph/validate/validate.ts'
import {
  type JsonValue,
  NumberText,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../lib/json/lossless-json.ts'
import { ServiceError } from '../../../src/domain/errors.ts'
import { needsOf } from '../../../src/domain/workflows/needs.ts'
import { createPrepareWorkflow } from '../../../src/domain/workflows/prepare.ts'
import { drawnCases } from '../../support/drawn-cases.ts'
import { recordedCatalog } from '../../support/engines/recorded-catalog.ts'

const catalog = recordedCatalog()
const prepareWorkflow = createPrepareWorkflow({
  catalog: () => catalog,
  assets: {
    findMany: async () => [],
    findNewestByPath: async () => [],
    findInFolders: async () => [],
    findNewestByHash: async () => [],
  },
  clock: { now: () => new Date(0) },
})

const anyValue = fc.oneof(
  fc.jsonValue(),
  fc.bigInt(-(2n ** 80n), 2n ** 80n),
  fc.constantFrom(new NumberText('1.0'), new NumberText('-0'), new NumberText('1e999'), new NumberText('0.50')),
  fc.constantFrom('', 'true', ' 12 ', '1e3', 'nan', 'inf', 'abc', 'x.png', '__proto__', 'png', 'mp4', 'h264'),
  fc.constantFrom(
    { __type: 'core/ASSET' },
    { __type: 'core/ASSET', info: { id: 'x' } },
    { __value__: 5 },
    { __value__: [1, 2] },
  ),
) as fc.Arbitrary<JsonValue>

const nodeId = fc.constantFrom('1', '2', '3', '4', '5:1', '__proto__')
const link = fc.tuple(fc.oneof(nodeId, anyValue), fc.oneof(fc.nat(3), anyValue)) as fc.Arbitrary<JsonValue>
const classType = fc.constantFrom(...catalog.classTypes(), 'SaveImage', 'PreviewAny', 'SaveVideo', 'Nope', 'ImageBatch')

/** A node of a known class whose inputs carry the names that the class declares, with any values. */
const knownNode = classType.chain((name) => {
  const declared = catalog.find(name)?.input
  const names = Object.keys({ ...declared?.required, ...declared?.optional })
  const inputName = fc.constantFrom(...names, 'format.codec', 'images.image0', 'values.a', 'unknown')
  return fc.record({
    class_type: fc.constant(name),
    inputs: fc.dictionary(inputName, fc.oneof(link, anyValue), { maxKeys: 8 }),
  })
}) as fc.Arbitrary<JsonValue>

const workflow = fc
  .oneof(
    { weight: 6, arbitrary: fc.dictionary(nodeId, knownNode, { maxKeys: 5 }) },
    { weight: 1, arbitrary: fc.dictionary(nodeId, fc.oneof(knownNode, anyValue)) },
    { weight: 1, arbitrary: anyValue },
    // Through text, as it arrives: the parser decides how each number is held.
  )
  .map((value) => parseLosslessJson(stringifyLosslessJson(value as JsonValue)))

test('whatever is submitted is either prepared or refused, and its text is JSON', async () => {
  await fc.assert(
    fc.asyncProperty(workflow, async (submitted) => {
      try {
        const { text, graph } = await prepareWorkflow('any', submitted, { pool: 'default' })
        assert.deepEqual(readGraph(parseLosslessJson(text)), new Map(graph))
      } catch (error) {
        assert.ok(error instanceof ServiceError, String((error as Error).stack))
        assert.ok(['invalid_workflow', 'missing_asset', 'workflow_format_ui'].includes(error.refusal))
        stringifyLosslessJson(error.details as JsonValue)
      }
    }),
    { numRuns: drawnCases(500) },
  )
})

function holdsWrapper(value: JsonValue): boolean {
  return stringifyLosslessJson(value).includes('__value__')
}

test('validating its own result changes nothing', () => {
  fc.assert(
    fc.property(
      fc
        .dictionary(nodeId, knownNode, { maxKeys: 5 })
        .filter((submitted) => !Object.values(submitted).some(holdsWrapper)),
      (submitted) => {
        const first = validate(readGraph(submitted), { catalog })
        const second = validate(first.graph, { catalog })
        assert.deepEqual(second.graph, first.graph)
        assert.deepEqual(second.goodOutputs, first.goodOutputs)
        assert.deepEqual(second.error?.type, first.error?.type)
        needsOf(first.graph, [catalog])
      },
    ),
    { numRuns: drawnCases(500) },
  )
})

test('every u64 seed reaches the executed text digit by digit', () => {
  fc.assert(
    fc.property(fc.bigInt(0n, 2n ** 64n - 1n), (seed) => {
      const text = `{"1":{"class_type":"EmptyImage","inputs":{"width":8,"height":8,"batch_size":1,"color":0}},"2":{"class_type":"ImageAddNoise","inputs":{"image":["1",0],"seed":${seed},"strength":0.5}},"3":{"class_type":"PreviewImage","inputs":{"images":["2",0]}}}`
      const { graph, ok } = validate(readGraph(parseLosslessJson(text)), { catalog })
      assert.equal(ok, true)
      assert.ok(writeGraph(graph).includes(`"seed":${seed},`))
    }),
    { numRuns: 300 },
  )
})

test('the weights of a graph are what its loaders choose', () => {
  const graph = readGraph({
    1: { class_type: 'CheckpointLoaderSimple', inputs: { ckpt_name: 'b.safetensors' } },
    2: { class_type: 'LoraLoader', inputs: { lora_name: 'a.safetensors', model: ['1', 0], clip: ['1', 1] } },
    3: { class_type: 'LoraLoader', inputs: { lora_name: 'a.safetensors' } },
    4: { class_type: 'SaveImage', inputs: { filename_prefix: 'x.safetensors' } },
  })
  assert.deepEqual(needsOf(graph, [catalog]).weights, ['a.safetensors', 'b.safetensors'])
})
