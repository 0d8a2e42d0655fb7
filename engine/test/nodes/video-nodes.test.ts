/** Video nodes in a real engine: put together, taken apart, cut and sampled. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type GraphJson, lastOf, type TestEngine } from '../support/harness.ts'
import { withoutFfmpeg } from '../support/media.ts'
import { failureOf, openMediaEngine, seenAudio, seenValue } from '../support/media-engine.ts'
import {
  components,
  create,
  createClips,
  dump,
  FRAMES,
  frames,
  numbers,
  range,
  slice,
  tone,
} from '../support/video-graphs.ts'

let engine: TestEngine
before(async () => {
  engine = await openMediaEngine()
})
after(() => engine[Symbol.asyncDispose]())

const skip = withoutFfmpeg
const clip = createClips(() => engine)

test('a video in memory comes apart as it was put together', async () => {
  const graph: GraphJson = {
    1: frames(),
    2: tone(1),
    v: create('1', { audio: ['2', 0], bit_depth: 10 }),
    3: components('v'),
  }
  for (const slot of range(0, 5)) graph[`d${slot}`] = dump('3', slot)
  const events = await engine.run(graph)
  assert.deepEqual(numbers(events, 'd0'), range(0, FRAMES))
  assert.deepEqual(seenAudio(events, 'd1').shape, [1, 2, 44_100])
  assert.deepEqual([seenValue(events, 'd2'), seenValue(events, 'd3'), seenValue(events, 'd4')], [12, 10, 'sRGB'])
})

const PARTS: readonly [start: number, duration: number, expected: number[]][] = [
  [0, 0, range(0, 24)],
  [0.5, 0, range(6, 24)],
  [0.5, 0.25, range(6, 9)],
  [-0.5, 0, range(18, 24)],
  [-99, 0.5, range(0, 6)],
  [1.5, 99, range(18, 24)],
]

for (const [start, duration, expected] of PARTS) {
  test(`a slice of ${duration} s from ${start} s has the right frames`, async () => {
    const rest = { 2: slice(start, duration), 3: components('2'), 4: dump('3') }
    const events = await engine.run({ 1: frames(), v: create('1'), ...rest })
    assert.deepEqual(numbers(events, '4'), expected)
  })
}

for (const [start, duration, expected] of PARTS.slice(1, 4)) {
  test(`a slice of ${duration} s from ${start} s of a file has the same frames`, { skip }, async () => {
    const load = { class_type: 'LoadVideo', inputs: { file: 'x.mp4' } }
    const graph = { v: load, 2: slice(start, duration), 3: components('2'), 4: dump('3') }
    const events = await engine.run(graph, { files: { 'x.mp4': await clip('mp4', 'h264') } })
    assert.deepEqual(numbers(events, '4'), expected)
  })
}

test('slices of slices count from the start of the part, and sound is cut with the picture', async () => {
  const graph: GraphJson = {
    1: frames(),
    2: tone(5),
    v: create('1', { audio: ['2', 0] }),
    3: slice(0.5, 1),
    4: {
      class_type: 'Video Slice',
      inputs: { video: ['3', 0], start_time: 0.25, duration: 9, strict_duration: false },
    },
    5: components('4'),
    6: dump('5'),
    7: dump('5', 1),
  }
  const events = await engine.run(graph)
  assert.deepEqual(numbers(events, '6'), range(9, 18))
  assert.deepEqual(seenAudio(events, '7').shape, [1, 2, 33_075])
})

test('a slice that cannot be is refused with the numbers', async () => {
  const cut = (start: number, duration: number, isStrict: boolean): GraphJson => ({
    1: frames(),
    v: create('1'),
    2: slice(start, duration, isStrict),
    3: dump('2'),
  })
  const message = 'Failed to slice video:\nSource duration: 2.0\nStart time: 1.5\nTarget duration: 0.75'
  assert.deepEqual(failureOf(await engine.run(cut(1.5, 0.75, true))), { type: 'ValueError', message })
  assert.equal(failureOf(await engine.run(cut(2, 0, false))).type, 'ValueError')
  assert.equal(lastOf(await engine.run(cut(1.5, 0.5, true)), 'succeeded').type, 'succeeded')
})

const SAMPLES: readonly [strategy: string, count: number, expected: number[]][] = [
  ['uniform', 4, [0, 8, 15, 23]],
  ['uniform', 1, [12]],
  ['head', 3, [0, 1, 2]],
  ['tail', 3, [21, 22, 23]],
  ['uniform', 999, range(0, 24)],
]

for (const [strategy, count, expected] of SAMPLES) {
  const sample = { class_type: 'VideoFrameSample', inputs: { video: ['v', 0], num_frames: count, strategy, seed: 0 } }
  const rest = { 2: sample, 3: components('2'), 4: dump('3') }

  test(`${count} frames by ${strategy} are the right ones`, async () => {
    assert.deepEqual(numbers(await engine.run({ 1: frames(), v: create('1'), ...rest }), '4'), expected)
  })

  if (count === 999) continue
  test(`${count} frames by ${strategy} are the same from a file`, { skip }, async () => {
    const load = { class_type: 'LoadVideo', inputs: { file: 'x.mkv' } }
    const events = await engine.run({ v: load, ...rest }, { files: { 'x.mkv': await clip('mkv', 'h264') } })
    assert.deepEqual(numbers(events, '4'), expected)
  })
}

test('frames by chance are distinct, in order, and the same for the same seed', async () => {
  const sample = (seed: unknown) => ({
    class_type: 'VideoFrameSample',
    inputs: { video: ['v', 0], num_frames: 6, strategy: 'random', seed },
  })
  const graph = (seed: unknown): GraphJson => ({
    1: frames(),
    v: create('1'),
    2: sample(seed),
    3: components('2'),
    4: dump('3'),
  })
  const first = numbers(await engine.run(graph(7)), '4')
  assert.deepEqual(
    first,
    [...new Set(first)].sort((a, b) => a - b),
  )
  assert.equal(first.length, 6)
  // Seeds count modulo 2^32 - 1.
  assert.deepEqual(numbers(await engine.run(graph(7n + 2n ** 32n - 1n)), '4'), first)
  assert.notDeepEqual(numbers(await engine.run(graph(18_446_744_073_709_551_615n)), '4'), first)
})

test('a crop by frames stays inside the video', async () => {
  const crop = (start: number, length: number) => ({
    class_type: 'VideoTemporalCrop',
    inputs: { video: ['v', 0], start_frame: start, length },
  })
  const graph = (start: number, length: number): GraphJson => ({
    1: frames(),
    v: create('1'),
    2: crop(start, length),
    3: components('2'),
    4: dump('3'),
  })
  assert.deepEqual(numbers(await engine.run(graph(5, 4)), '4'), range(5, 9))
  assert.deepEqual(numbers(await engine.run(graph(20, 99)), '4'), range(20, 24))
  assert.deepEqual(numbers(await engine.run(graph(500, 4)), '4'), [23])
})
