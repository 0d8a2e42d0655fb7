/** Parts of a video: by time for both kinds, by frames too. Frames in memory are shared, not copied. */
import { type Audio, channelOf } from '../../media/audio.ts'
import { countFrames, type ReadWork } from '../../media/read-video.ts'
import type { FrameVideo, Video } from '../../media/video.ts'
import { type PixelWork, Tensor } from '../../tensor/tensor.ts'

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
export function cutFrames(video: FrameVideo, { start, length }: FrameRange, work: PixelWork): FrameVideo {
  const { images, audio, fps } = video
  const [, ...shape] = images.shape
  const size = shape.reduce((product, side) => product * side, 1)
  const part = new Tensor([length, ...shape], images.data.subarray(start * size, (start + length) * size))
  const sound = audio === null ? null : cutSound(audio, start / fps, length / fps, work)
  return { ...video, images: part, audio: sound }
}

/** How many frames a video has, and how fast it plays. */
export async function measure(video: Video, work: ReadWork): Promise<{ frames: number; fps: number }> {
  if (video.kind === 'frames') return { frames: video.images.shape[0], fps: video.fps }
  const { frameCount, stream } = await countFrames(video, work)
  return { frames: frameCount, fps: stream.fps }
}

/** The same for both kinds; a file is only narrowed to a shorter time. */
export function cutRange(video: Video, range: FrameRange, { fps, work }: { fps: number; work: PixelWork }): Video {
  if (video.kind === 'frames') return cutFrames(video, range, work)
  const start = video.window.start + range.start / fps
  return { ...video, window: { start, duration: range.length / fps } }
}
