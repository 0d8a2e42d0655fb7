/** Batches and lists of images beyond the recordings. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import sharp from 'sharp'
import type { JsonObject } from '../../../lib/json/lossless-json.ts'
import { floatsOf } from '../support/golden-cases.ts'
import {
  bytesOf,
  dumped,
  filesOf,
  type GraphJson,
  lastOf,
  openTestEngine,
  type TestEngine,
} from '../support/harness.ts'

let engine: TestEngine
before(async () => {
  engine = await openTestEngine()
})
after(() => engine[Symbol.asyncDispose]())

const empty = (side: number, color: number, batch = 1) => ({
  class_type: 'EmptyImage',
  inputs: { width: side, height: side, batch_size: batch, color },
})
// Two of one size, then three of another: a list of five pictures.
const LIST: GraphJson = {
  two: empty(2, 0x330000, 2),
  three: empty(2, 0x660000, 3),
  list: { class_type: 'CreateList', inputs: { 'inputs.input0': ['two', 0], 'inputs.input1': ['three', 0] } },
}

async function run(graph: GraphJson) {
  const events = await engine.run({ ...graph, dump: { class_type: 'TestDump', inputs: { source: ['x', 0] } } })
  assert.equal(events.at(-1)?.type, 'succeeded', JSON.stringify(events.at(-1)))
  return (dumped(events, 'dump') as JsonObject[]).map(({ shape, f32_b64 }) => ({
    shape: shape as number[],
    first: Math.round(floatsOf(f32_b64 as string)[0] * 255),
  }))
}

test('a list of batches is regrouped across its elements, the last group being shorter', async () => {
  const x = { class_type: 'RebatchImages', inputs: { images: ['list', 0], batch_size: 3 } }
  assert.deepEqual(await run({ ...LIST, x }), [
    { shape: [3, 2, 2, 3], first: 0x33 },
    { shape: [2, 2, 2, 3], first: 0x66 },
  ])
})

test('images of different size cannot share a batch, and the failure says which', async () => {
  const graph: GraphJson = {
    a: empty(2, 0),
    b: empty(3, 0),
    list: { class_type: 'CreateList', inputs: { 'inputs.input0': ['a', 0], 'inputs.input1': ['b', 0] } },
    x: { class_type: 'RebatchImages', inputs: { images: ['list', 0], batch_size: 2 } },
    out: { class_type: 'PreviewAny', inputs: { source: ['x', 0] } },
  }
  const { failure } = lastOf(await engine.run(graph), 'failed')
  const message =
    'Sizes of tensors must match except in dimension 0. Expected size 2 but got size 3 for tensor number 1 in the list.'
  assert.deepEqual([failure.exceptionType, failure.message], ['RuntimeError', message])
})

test('a part of a batch stays inside it, whatever index is asked for', async () => {
  const from = async (batch_index: number, length: number) => {
    const x = { class_type: 'ImageFromBatch', inputs: { image: ['three', 0], batch_index, length } }
    return (await run({ three: LIST.three, x }))[0].shape[0]
  }
  assert.equal(await from(1, 9), 2)
  assert.equal(await from(99, 2), 1)
  assert.equal(await from(-2, 1), 1)
  assert.equal(await from(-99, 2), 2)
})

test('an image without alpha becomes opaque beside one that has it', async () => {
  const graph: GraphJson = {
    a: empty(2, 0),
    m: { class_type: 'SolidMask', inputs: { value: 1, width: 2, height: 2 } },
    b: { class_type: 'JoinImageWithAlpha', inputs: { image: ['a', 0], alpha: ['m', 0] } },
    x: { class_type: 'BatchImagesNode', inputs: { 'images.image0': ['a', 0], 'images.image1': ['b', 0] } },
    alpha: { class_type: 'ImageToMask', inputs: { image: ['x', 0], channel: 'alpha' } },
    dump: { class_type: 'TestDump', inputs: { source: ['alpha', 0] } },
  }
  const [{ f32_b64 }] = dumped(await engine.run(graph), 'dump') as JsonObject[]
  assert.deepEqual([...floatsOf(f32_b64 as string)], [1, 1, 1, 1, 0, 0, 0, 0])
})

test('a shuffle is decided by its seed, and large seeds are taken whole', async () => {
  const shuffled = async (seed: unknown) => {
    const x = { class_type: 'ShuffleDataset', inputs: { images: ['list', 0], seed } }
    return (await run({ ...LIST, x })).map(({ first }) => first)
  }
  const once = await shuffled(7)
  assert.deepEqual(await shuffled(7), once)
  assert.equal(once.length, 5)
  // NumPy's seeds end at 2^32 - 2: this one begins again at 7.
  assert.deepEqual(await shuffled(4294967295 + 7), once)
})

test('equal pictures are dropped, and a list of one picture passes', async () => {
  const x = { class_type: 'ImageDeduplication', inputs: { images: ['list', 0], similarity_threshold: 1 } }
  assert.equal((await run({ ...LIST, x })).length, 1)
})

test('a grid has room for all rows, and leaves unused cells black', async () => {
  const inputs = { images: ['list', 0], columns: 2, cell_width: 32, cell_height: 40, padding: 5 }
  const [{ shape }] = await run({ ...LIST, x: { class_type: 'ImageGrid', inputs } })
  assert.deepEqual(shape, [1, 3 * 40 + 2 * 5, 2 * 32 + 5, 3])
})

test('a dataset is saved as numbered files below its folder', async () => {
  const save = (mode: string) => ({
    class_type: 'SaveImageDataSetToFolder',
    inputs: { images: ['list', 0], folder_name: 'sets/cats', filename_prefix: 'cat', mode },
  })
  const plain = filesOf(await engine.run({ ...LIST, save: save('overwrite') }), 'save')
  assert.deepEqual(
    plain.map(({ filename, subfolder }) => `${subfolder}/${filename}`),
    [0, 1, 2, 3, 4].map((index) => `sets/cats/cat_0000${index}.png`),
  )
  assert.equal((await sharp(await bytesOf(plain[4])).metadata()).width, 2)
  const counted = filesOf(await engine.run({ ...LIST, save: save('increment') }), 'save')
  assert.equal(counted[1].filename, 'cat_00001_00001.png')
})

test('a dataset outside of the output folder is refused', async () => {
  const inputs = { images: ['list', 0], folder_name: '../x', filename_prefix: 'cat', mode: 'overwrite' }
  const events = await engine.run({ ...LIST, save: { class_type: 'SaveImageDataSetToFolder', inputs } })
  assert.match(lastOf(events, 'failed').failure.message, /outside the output folder/)
})
