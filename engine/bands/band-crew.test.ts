/** Work that a thread shares with a real helper: the same result whoever writes a row, whatever becomes of the helper. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { Interrupted } from '../node/node-error.ts'
import { adjustContrast, imageBlend, imageInvert, normalizeImages } from '../nodes/filters/adjustments.ts'
import { imageCompositeMasked } from '../nodes/masks/composite.ts'
import { throughBytes } from '../tensor/channels.ts'
import { filterSeparable, gaussianHalf } from '../tensor/filters/separable-filter.ts'
import { UPSCALE_METHODS } from '../tensor/resize/resize-rows.ts'
import { upscale } from '../tensor/resize/upscale.ts'
import type { PixelWork, ShareRows, Tensor } from '../tensor/tensor.ts'
import { tensor } from '../test/support/call-node.ts'
import type { Fate, WatchedHelperData } from '../test/support/watched-helper.ts'
import { countIdle, createCorePlaces, showBusy, takePlace } from './band-board.ts'
import { BandCrew } from './band-crew.ts'

const allocate = (shape: readonly number[]) => tensor(shape, () => Number.NaN)
const alone: PixelWork = { allocate, checkpoint() {} }
const BEGIN_LIMIT_MS = 60_000

function noise(shape: readonly number[]): Tensor {
  return tensor(shape, (index) => ((index * 7919 + 31) % 1013) / 900 - 0.05)
}

/** Bytes, because a list of all values that differ would take minutes to make. */
function assertSameBits(actual: Tensor, expected: Tensor, name: string): void {
  const bytesOf = ({ data }: Tensor) => Buffer.from(data.buffer, data.byteOffset, data.byteLength)
  assert.ok(bytesOf(actual).equals(bytesOf(expected)), `${name}: the bits differ`)
}

/** A crew of this thread and one helper. */
function openCrew(fate: Fate, given: { leastValues?: number; silentMs?: number } = {}) {
  const places = createCorePlaces(2)
  showBusy(places, 1)
  const begun = new Int32Array(new SharedArrayBuffer(4))
  const opened: Worker[] = []
  const crew = new BandCrew({
    places,
    owner: 1,
    leastValues: 0,
    ...given,
    openHelper() {
      const workerData: WatchedHelperData = { begun, fate }
      const helper = new Worker(new URL('../test/support/watched-helper.ts', import.meta.url), { workerData })
      opened.push(helper)
      return helper
    },
  })
  return {
    ...{ crew, opened },
    shareRows: ((job, checkpoint) => crew.shareRows(job, checkpoint)) satisfies ShareRows,
    /** For one operation: the helper has begun a row of it before this thread writes any. */
    work(): PixelWork {
      const before = Atomics.load(begun, 0)
      return {
        allocate,
        shareRows: (job, checkpoint) => crew.shareRows(job, checkpoint),
        checkpoint() {
          assert.notEqual(Atomics.wait(begun, 0, before, BEGIN_LIMIT_MS), 'timed-out', 'the helper begins a row')
        },
      }
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(opened.map((helper) => helper.terminate()))
    },
  }
}

type Operation = (work: PixelWork) => Tensor

const context = (work: PixelWork) => work as never
const first = (result: unknown) => (result as { outputs: readonly Tensor[] }).outputs[0]

function operations(): ReadonlyMap<string, Operation> {
  const [odd, batch, mask] = [noise([1, 201, 67, 3]), noise([3, 97, 41, 4]), noise([2, 203, 35])]
  const second = noise([1, 97, 41, 4])
  const found = new Map<string, Operation>()
  for (const method of UPSCALE_METHODS) {
    for (const crop of ['disabled', 'center'] as const) {
      found.set(`${method} larger, ${crop}`, (work) => upscale(odd, { width: 131, height: 307, method, crop }, work))
      found.set(`${method} smaller, ${crop}`, (work) => upscale(batch, { width: 20, height: 53, method, crop }, work))
      found.set(`${method} of masks, ${crop}`, (work) => upscale(mask, { width: 35, height: 101, method, crop }, work))
    }
  }
  for (const radius of [1, 9]) {
    const half = gaussianHalf(radius, 1)
    found.set(`blur ${radius}`, (work) => filterSeparable(batch, { half }, work))
    found.set(`sharpen ${radius}`, (work) => filterSeparable(odd, { half, sharpenBy: 4 }, work))
  }
  const large = noise([2, 300, 111, 3])
  const blend = { blend_factor: 0.3, blend_mode: 'overlay' } as const
  const many = noise([4, 97, 41, 4])
  const run = (node: { run(inputs: never, context: never): unknown }, inputs: object): Operation => {
    return (work) => first(node.run(inputs as never, context(work)))
  }
  found.set('blend', run(imageBlend, { image1: many, image2: second, ...blend }))
  found.set('blend, first repeated', run(imageBlend, { image1: second, image2: many, ...blend }))
  const placed = { destination: many, source: batch, x: 9, y: 17, resize_source: false }
  found.set('composite', run(imageCompositeMasked, placed))
  found.set('composite, masked', run(imageCompositeMasked, { ...placed, mask: noise([2, 30, 30]) }))
  found.set('invert', run(imageInvert, { image: large }))
  found.set('contrast', run(adjustContrast, { images: large, factor: 1.3 }))
  found.set('normalize', run(normalizeImages, { images: large, mean: 0.4, std: 0.3 }))
  found.set('through bytes', (work) => throughBytes(large, work))
  return found
}

test('every operation gives the same bits with a helper as alone', async () => {
  await using shared = openCrew('lives')
  for (const [name, operate] of operations()) {
    assertSameBits(operate(shared.work()), operate(alone), name)
  }
})

for (const fate of ['exits', 'throws'] as const) {
  test(`a band of a helper that ${fate} in the middle of it is written by the compute thread`, async () => {
    await using shared = openCrew(fate)
    const source = noise([1, 180, 50, 3])
    const operate: Operation = (work) =>
      upscale(source, { width: 90, height: 240, method: 'bicubic', crop: 'disabled' }, work)
    assertSameBits(operate(shared.work()), operate(alone), fate)
    await shared.crew.settled()
  })
}

test('a helper that falls silent fails the work, and has ended before the work is settled', async () => {
  await using shared = openCrew('hangs', { silentMs: 50 })
  const source = noise([1, 180, 50, 3])
  const half = gaussianHalf(2, 1)
  assert.throws(
    () => filterSeparable(source, { half }, shared.work()),
    /a helper of the compute thread stopped working/,
  )
  await shared.crew.settled()
  assert.equal(shared.opened[0].threadId, -1)
})

test('a cancel stops the helper before the work is left', async () => {
  await using shared = openCrew('lives')
  const source = noise([1, 400, 400, 3])
  const result = allocate([1, 800, 800, 3])
  const helped = shared.work()
  const work: PixelWork = {
    ...helped,
    allocate: () => result,
    checkpoint() {
      helped.checkpoint()
      throw new Interrupted()
    },
  }
  const options = { width: 800, height: 800, method: 'bicubic', crop: 'disabled' } as const
  assert.throws(() => upscale(source, options, work), Interrupted)
  // Whoever gets this memory next must find it as it was left, however long the helper would have worked on.
  const left = tensor(result.shape, (index) => result.data[index])
  assert.ok(left.data.some(Number.isNaN), 'the work was not finished')
  upscale(noise([1, 201, 67, 3]), { width: 131, height: 307, method: 'area', crop: 'disabled' }, shared.work())
  assertSameBits(result, left, 'the cancelled work')
})

test('a helper that dies is replaced, but not for ever', async () => {
  await using shared = openCrew('exits')
  const source = noise([1, 120, 40, 3])
  const half = gaussianHalf(1, 1)
  for (let round = 0; round < 3; round++) {
    filterSeparable(source, { half }, shared.work())
    await once(shared.opened[round], 'exit')
  }
  filterSeparable(source, { half }, { ...alone, shareRows: shared.shareRows })
  assert.equal(shared.opened.length, 3)
})

test('small pictures, and pictures of few rows, start no helper', async () => {
  await using shared = openCrew('lives', { leastValues: 30_000 })
  const half = gaussianHalf(1, 1)
  const work = { ...alone, shareRows: shared.shareRows }
  filterSeparable(noise([1, 60, 60, 3]), { half }, work)
  upscale(noise([1, 40, 900, 3]), { width: 900, height: 30, method: 'lanczos', crop: 'disabled' }, work)
  assert.equal(shared.opened.length, 0)
})

test('there are no more helpers than cores that no compute thread works on, and one place fewer than cores', () => {
  const places = createCorePlaces(4)
  showBusy(places, 3)
  assert.equal(countIdle(places), 1)
  showBusy(places, 9)
  assert.equal(countIdle(places), 0)
  assert.deepEqual(
    [1, 1, 2, 2].map((owner) => takePlace(places, owner)),
    [true, true, true, false],
  )
})
