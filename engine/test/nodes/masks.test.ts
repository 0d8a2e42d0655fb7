/** Mask and compositing nodes beyond the recordings: odd sizes, batches of different length, cancel. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { JsonObject } from '../../../lib/json/lossless-json.ts'
import { floatsOf } from '../support/golden-cases.ts'
import { dumped, type GraphJson, lastOf, openTestEngine, outline, type TestEngine } from '../support/harness.ts'

let engine: TestEngine
before(async () => {
  engine = await openTestEngine({
    memoryLimitBytes: 2 ** 30,
  })
})
after(() => engine[Symbol.asyncDispose]())

const empty = (width: number, height: number, color = 0, batch = 1) => ({
  class_type: 'EmptyImage',
  inputs: { width, height, batch_size: batch, color },
})
const solid = (value: number, width: number, height: number) => ({
  class_type: 'SolidMask',
  inputs: { value, width, height },
})

async function tensorsOf(graph: GraphJson, id: string, slot = 0) {
  const events = await engine.run({ ...graph, dump: { class_type: 'TestDump', inputs: { source: [id, slot] } } })
  assert.equal(events.at(-1)?.type, 'succeeded', JSON.stringify(events.at(-1)))
  return (dumped(events, 'dump') as JsonObject[]).map(({ shape, f32_b64 }) => ({
    shape,
    values: [...floatsOf(f32_b64 as string)],
  }))
}

async function failureOf(graph: GraphJson) {
  return lastOf(
    await engine.run({ ...graph, out: { class_type: 'PreviewAny', inputs: { source: ['x', 0] } } }),
    'failed',
  ).failure
}

test('a dot grows into a diamond, or into a square, and stays inside the mask', async () => {
  // One white pixel at the left border of a black 5 by 5 mask.
  const dot: GraphJson = {
    black: solid(0, 5, 5),
    white: solid(1, 1, 1),
    dot: {
      class_type: 'MaskComposite',
      inputs: { destination: ['black', 0], source: ['white', 0], x: 0, y: 2, operation: 'add' },
    },
  }
  const grown = async (expand: number, tapered: boolean) => {
    const x = { class_type: 'GrowMask', inputs: { mask: ['dot', 0], expand, tapered_corners: tapered } }
    const [{ values }] = await tensorsOf({ ...dot, x }, 'x')
    return Array.from({ length: 5 }, (_, y) => values.slice(y * 5, y * 5 + 5).join(''))
  }
  assert.deepEqual(await grown(2, true), ['10000', '11000', '11100', '11000', '10000'])
  assert.deepEqual(await grown(2, false), ['11100', '11100', '11100', '11100', '11100'])
  assert.deepEqual(await grown(-1, true), ['00000', '00000', '00000', '00000', '00000'])
  assert.deepEqual(
    await grown(16384, true),
    Array.from({ length: 5 }, () => '11111'),
  )
})

test('a crop beyond the mask is empty, and can be passed on', async () => {
  const graph: GraphJson = {
    m: solid(1, 4, 3),
    x: { class_type: 'CropMask', inputs: { mask: ['m', 0], x: 9, y: 1, width: 5, height: 5 } },
    inverted: { class_type: 'InvertMask', inputs: { mask: ['x', 0] } },
  }
  assert.deepEqual(await tensorsOf(graph, 'inverted'), [{ shape: [1, 2, 0], values: [] }])
})

test('a mask laid wholly outside of another changes nothing', async () => {
  const inputs = { destination: ['a', 0], source: ['b', 0], x: 7, y: 0, operation: 'subtract' }
  const graph: GraphJson = { a: solid(0.5, 2, 2), b: solid(1, 2, 2), x: { class_type: 'MaskComposite', inputs } }
  assert.deepEqual((await tensorsOf(graph, 'x'))[0].values, [0.5, 0.5, 0.5, 0.5])
})

test('exactly half counts as unset in mask logic, and a threshold keeps only what is above it', async () => {
  const graph: GraphJson = {
    a: solid(0.5, 1, 1),
    b: solid(1, 1, 1),
    x: {
      class_type: 'MaskComposite',
      inputs: { destination: ['a', 0], source: ['b', 0], x: 0, y: 0, operation: 'xor' },
    },
    c: solid(0.4, 1, 1),
    y: { class_type: 'ThresholdMask', inputs: { mask: ['c', 0], value: 0.4 } },
  }
  assert.deepEqual((await tensorsOf(graph, 'x'))[0].values, [1])
  assert.deepEqual((await tensorsOf(graph, 'y'))[0].values, [0])
})

test('a source batch repeats over a longer destination batch, and inputs stay as they were', async () => {
  const graph: GraphJson = {
    below: empty(2, 1, 0, 3),
    above: empty(1, 1, 0xff0000),
    x: {
      class_type: 'ImageCompositeMasked',
      inputs: { destination: ['below', 0], source: ['above', 0], x: 1, y: 0, resize_source: false },
    },
  }
  const [{ shape, values }] = await tensorsOf(graph, 'x')
  assert.deepEqual(shape, [3, 1, 2, 3])
  assert.deepEqual(values, [0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0])
  const [below] = await tensorsOf(graph, 'below')
  assert.ok(below.values.every((value) => value === 0))
})

test('alpha joins the longer batch, and splits off again as the same mask', async () => {
  const graph: GraphJson = {
    image: empty(2, 2, 0x336699),
    one: solid(0.25, 2, 2),
    two: solid(0.5, 1, 1),
    masks: { class_type: 'BatchMasksNode', inputs: { 'masks.mask0': ['one', 0], 'masks.mask1': ['two', 0] } },
    joined: { class_type: 'JoinImageWithAlpha', inputs: { image: ['image', 0], alpha: ['masks', 0] } },
    split: { class_type: 'SplitImageWithAlpha', inputs: { image: ['joined', 0] } },
  }
  const [joined] = await tensorsOf(graph, 'joined')
  assert.deepEqual(joined.shape, [2, 2, 2, 4])
  assert.deepEqual((await tensorsOf(graph, 'split', 1))[0].values, [0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 0.5, 0.5])
  assert.deepEqual((await tensorsOf(graph, 'split'))[0].values.length, 24)
})

test('Porter-Duff takes the shortest batch, and sizes from the destination', async () => {
  const graph: GraphJson = {
    source: empty(4, 4, 0xffffff, 3),
    destination: empty(2, 3, 0, 2),
    clear: solid(0, 5, 5),
    x: {
      class_type: 'PorterDuffImageComposite',
      inputs: {
        source: ['source', 0],
        source_alpha: ['clear', 0],
        destination: ['destination', 0],
        destination_alpha: ['clear', 0],
        mode: 'SRC_OVER',
      },
    },
  }
  assert.deepEqual(await tensorsOf(graph, 'x'), [{ shape: [1, 3, 2, 3], values: new Array(18).fill(1) }])
})

test('a channel that an image does not have fails as an index does in Python', async () => {
  const failure = await failureOf({
    image: empty(2, 2),
    x: { class_type: 'ImageToMask', inputs: { image: ['image', 0], channel: 'alpha' } },
  })
  assert.deepEqual(
    [failure.exceptionType, failure.message],
    ['IndexError', 'index 3 is out of bounds for dimension 3 with size 3'],
  )
})

test('a cancel takes effect inside growing and compositing', async () => {
  const graphs: GraphJson[] = [
    {
      m: solid(0, 4096, 4096),
      x: { class_type: 'GrowMask', inputs: { mask: ['m', 0], expand: 8000, tapered_corners: true } },
    },
    {
      a: empty(3000, 3000),
      m: solid(0.5, 3000, 3000),
      x: {
        class_type: 'PorterDuffImageComposite',
        inputs: {
          source: ['a', 0],
          source_alpha: ['m', 0],
          destination: ['a', 0],
          destination_alpha: ['m', 0],
          mode: 'DARKEN',
        },
      },
    },
  ]
  for (const graph of graphs) {
    const abort = new AbortController()
    const events = await engine.run(
      { ...graph, out: { class_type: 'PreviewAny', inputs: { source: ['x', 0] } } },
      {
        signal: abort.signal,
        onEvent(event) {
          if (event.type === 'node_started' && event.nodeId === 'x') abort.abort()
        },
      },
    )
    assert.equal(outline(events).split(' ').at(-1), 'interrupted')
    assert.ok(!outline(events).includes('x.'))
  }
})
