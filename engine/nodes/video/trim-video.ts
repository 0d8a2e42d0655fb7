/** Parts of a video, by seconds or by frames. */
import { fromPythonNumber, pythonStr } from '../../../lib/python/values.ts'
import { readVideoFacts } from '../../media/read-video.ts'
import { toVideoValue, type Video } from '../../media/video.ts'
import { defineNode, values } from '../../node/define-node.ts'
import { boolean, float, int } from '../../node/input-kinds.ts'
import type { NodeContext } from '../../node/node-context.ts'
import { NodeError } from '../../node/node-error.ts'
import { cutFrames, cutRange, measure } from './frame-range.ts'
import { video } from './video-kinds.ts'

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
