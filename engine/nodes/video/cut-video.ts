/** Parts of a video, by seconds or by frames. */

import { fromPythonNumber, pythonStr, roundHalfEven } from '../../../lib/python/values.ts'
import { type Audio, channelOf } from '../../media/audio.ts'
import { countFrames, type ReadWork, readFrames, readVideoFacts } from '../../media/read-video.ts'
import { type FrameVideo, toVideoValue, type Video } from '../../media/video.ts'
import { defineNode, values } from '../../node/define-node.ts'
import { boolean, combo, float, int, MAX_SEED, wideInt } from '../../node/input-kinds.ts'
import type { NodeContext } from '../../node/node-context.ts'
import { NodeError } from '../../node/node-error.ts'
import { seedNumpy } from '../../random/random.ts'
import { type PixelWork, Tensor } from '../../tensor/tensor.ts'
import { video } from './make-video.ts'

// Parts of a video: by time for both kinds, by frames too. Frames in memory are shared, not copied.

interface FrameRange {
  readonly start: number
  readonly length: number
}

function cutSound({ waveform, sampleRate }: Audio, from: number, seconds: number, { allocate }: PixelWork): Audio {
  const [batch, channels, whole] = waveform.shape
  const start = Math.min(whole, Math.round(from * sampleRate))
  const end = Math.min(whole, Math.round((from + seconds) * sampleRate))
  const cut = allocate([batch, channels, end - start])
  for (let row = 0; row < batch * channels; row++) {
    const source = channelOf(waveform, Math.floor(row / channels), row % channels)
    cut.data.set(source.subarray(start, end), row * (end - start))
  }
  return { waveform: cut, sampleRate }
}

/** Frames start..start+length-1, which exist. */
function cutFrames(video: FrameVideo, { start, length }: FrameRange, work: PixelWork): FrameVideo {
  const { images, audio, fps } = video
  const [, ...shape] = images.shape
  const size = shape.reduce((product, side) => product * side, 1)
  const part = new Tensor([length, ...shape], images.data.subarray(start * size, (start + length) * size))
  const sound = audio === null ? null : cutSound(audio, start / fps, length / fps, work)
  return { ...video, images: part, audio: sound }
}

/** How many frames a video has, and how fast it plays. */
async function measure(video: Video, work: ReadWork): Promise<{ frames: number; fps: number }> {
  if (video.kind === 'frames') return { frames: video.images.shape[0], fps: video.fps }
  const { frameCount, stream } = await countFrames(video, work)
  return { frames: frameCount, fps: stream.fps }
}

/** The same for both kinds; a file is only narrowed to a shorter time. */
function cutRange(video: Video, range: FrameRange, { fps, work }: { fps: number; work: PixelWork }): Video {
  if (video.kind === 'frames') return cutFrames(video, range, work)
  const start = video.window.start + range.start / fps
  return { ...video, window: { start, duration: range.length / fps } }
}

async function secondsOf(given: Video, context: NodeContext): Promise<number> {
  if (given.kind === 'frames') return given.images.shape[0] / given.fps
  return (await readVideoFacts(given, context)).duration
}

const text = (value: number) => pythonStr(fromPythonNumber(value))
// Times are sums of fractions: what misses by less than this is meant to fit.
const SLACK = 1e-6

function cutTime(given: Video, from: number, seconds: number, context: NodeContext): Video {
  if (given.kind === 'file') {
    const { window } = given
    return { ...given, window: { start: window.start + from, duration: seconds } }
  }
  // A frame belongs to the part in which it begins.
  const { fps, images } = given
  const start = Math.min(images.shape[0], Math.ceil(from * fps - SLACK))
  const end = Math.min(images.shape[0], Math.max(start + 1, Math.ceil((from + seconds) * fps - SLACK)))
  return cutFrames(given, { start, length: end - start }, context)
}

export const videoSlice = defineNode({
  classType: 'Video Slice',
  displayName: 'Trim Video',
  category: 'video',
  description: 'A part of a video by seconds; no duration means to the end, a negative start counts from the end.',
  style: 'schema',
  required: {
    video,
    start_time: float({ default: 0, min: -100_000, max: 100_000, step: 0.001 }),
    duration: float({ default: 0, min: 0, step: 0.001 }),
    strict_duration: boolean({ default: false }),
  },
  outputs: [{ type: 'VIDEO' }],
  cost: ({ video: { kind } }) => (kind === 'frames' ? 'inline' : 'compute'),
  async run({ video: given, start_time: start, duration, strict_duration: isStrict }, context) {
    const total = await secondsOf(given, context)
    const from = start < 0 ? Math.max(0, total + start) : start
    const rest = total - from
    if (rest <= SLACK || (isStrict && duration > rest + SLACK)) {
      const facts = `Source duration: ${text(total)}\nStart time: ${text(start)}\nTarget duration: ${text(duration)}`
      throw new NodeError('ValueError', `Failed to slice video:\n${facts}`)
    }
    const seconds = duration > 0 ? Math.min(duration, rest) : rest
    return values(toVideoValue(cutTime(given, from, seconds, context), context.allocate))
  },
})

export const videoTemporalCrop = defineNode({
  classType: 'VideoTemporalCrop',
  displayName: 'Crop Video (Temporal)',
  category: 'video/transform',
  description: 'A run of frames of a video.',
  style: 'schema',
  experimental: true,
  required: {
    video,
    start_frame: int({ default: 0, min: 0, max: 99_999 }),
    length: int({ default: 16, min: 1, max: 99_999 }),
  },
  outputs: [{ type: 'VIDEO', name: 'video' }],
  cost: ({ video: { kind } }) => (kind === 'frames' ? 'inline' : 'compute'),
  async run({ video: given, start_frame: wanted, length }, context) {
    const { frames, fps } = await measure(given, context)
    if (frames === 0) throw new NodeError('ValueError', 'the video has no frames')
    const start = Math.min(wanted, frames - 1)
    const range = { start, length: Math.min(length, frames - start) }
    return values(toVideoValue(cutRange(given, range, { fps, work: context }), context.allocate))
  },
})

// Single frames picked from a video.

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
