/** Single frames picked from a video. */
import { roundHalfEven } from '../../../lib/python/numbers.ts'
import { countFrames, readFrames } from '../../media/read-video.ts'
import { type FrameVideo, toVideoValue, type Video } from '../../media/video.ts'
import { defineNode, values } from '../../node/define-node.ts'
import { combo, int, MAX_SEED, wideInt } from '../../node/input-kinds.ts'
import type { NodeContext } from '../../node/node-context.ts'
import { NodeError } from '../../node/node-error.ts'
import { seedNumpy } from '../../random/numpy-legacy.ts'
import type { PixelWork, Tensor } from '../../tensor/tensor.ts'
import { cutRange, measure } from './frame-range.ts'
import { video } from './video-kinds.ts'

/** Positions spread evenly from the first frame to the last; a single one from the middle. */
function uniformPositions(total: number, count: number): number[] {
  if (count === 1) return [Math.floor(total / 2)]
  return Array.from({ length: count }, (_, index) => roundHalfEven((index * (total - 1)) / (count - 1)))
}

/** Distinct positions by chance, in order. */
function randomPositions(total: number, count: number, seed: number | bigint): number[] {
  return seedNumpy(seed)
    .permutation(total)
    .slice(0, count)
    .sort((a, b) => a - b)
}

function pickFrames(images: Tensor, positions: readonly number[], { allocate, checkpoint }: PixelWork): Tensor {
  const [, ...shape] = images.shape
  const picked = allocate([positions.length, ...shape])
  const size = picked.data.length / positions.length
  positions.forEach((position, index) => {
    checkpoint()
    picked.data.set(images.data.subarray(position * size, (position + 1) * size), index * size)
  })
  return picked
}

/** Single frames, out of time with any sound: the result has none. */
async function pick(given: Video, positions: readonly number[], context: NodeContext): Promise<FrameVideo> {
  if (given.kind === 'frames') return { ...given, images: pickFrames(given.images, positions, context), audio: null }
  const facts = await countFrames(given, context)
  const images = await readFrames({ video: given, facts, positions: new Set(positions) }, context)
  const { fps, bitDepth } = facts.stream
  return { kind: 'frames', images, audio: null, fps, bitDepth }
}

export const videoFrameSample = defineNode({
  classType: 'VideoFrameSample',
  displayName: 'Sample Video Frame',
  category: 'video',
  description: 'Some frames of a video: from its start, its end, evenly spread, or by chance.',
  style: 'schema',
  experimental: true,
  required: {
    video,
    num_frames: int({ default: 16, min: 1, max: 9999 }),
    strategy: combo(['uniform', 'head', 'tail', 'random'], { default: 'uniform' }),
    seed: wideInt({ default: 0, min: 0, max: MAX_SEED }),
  },
  outputs: [{ type: 'VIDEO', name: 'video' }],
  cost: 'compute',
  async run({ video: given, num_frames: wanted, strategy, seed }, context) {
    const { frames, fps } = await measure(given, context)
    if (frames === 0) throw new NodeError('ValueError', 'the video has no frames')
    const length = Math.min(wanted, frames)
    if (strategy === 'head' || strategy === 'tail') {
      const start = strategy === 'head' ? 0 : frames - length
      return values(toVideoValue(cutRange(given, { start, length }, { fps, work: context }), context.allocate))
    }
    const positions = strategy === 'uniform' ? uniformPositions(frames, length) : randomPositions(frames, length, seed)
    return values(toVideoValue(await pick(given, positions, context), context.allocate))
  },
})
