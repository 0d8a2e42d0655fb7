/** Graphs around video nodes, and what their frames tell: each is a plain grey that shows its number. */
import type { EngineEvent } from '../../graph/run-event.ts'
import type { GraphJson, TestEngine } from './harness.ts'
import { onlyFile, probed, seenTensor } from './media-engine.ts'

export const FRAMES = 24
export const FPS = 12

export const frames = (more: object = {}) => ({
  class_type: 'TestFrames',
  inputs: { count: FRAMES, width: 96, height: 64, channels: 3, ...more },
})
export const tone = (seconds: number) => ({
  class_type: 'TestTone',
  inputs: { frequency: 400, seconds, rate: 44_100, channels: 2, batch: 1 },
})
export const create = (images: string, more: object = {}) => ({
  class_type: 'CreateVideo',
  inputs: { images: [images, 0], fps: FPS, ...more },
})
export const dump = (id: string, slot = 0) => ({ class_type: 'TestDump', inputs: { source: [id, slot] } })
export const components = (id: string) => ({ class_type: 'GetVideoComponents', inputs: { video: [id, 0] } })
export const save = (id: string, inputs: object) => ({
  class_type: 'SaveVideo',
  inputs: { video: [id, 0], filename_prefix: 'video/x', ...inputs },
})
export const slice = (start: number, duration: number, isStrict = false) => ({
  class_type: 'Video Slice',
  inputs: { video: ['v', 0], start_time: start, duration, strict_duration: isStrict },
})

/** The numbers of the frames that a TestDump node saw. */
export function numbers(events: readonly EngineEvent[], nodeId: string): number[] {
  const { shape, data } = seenTensor(events, nodeId)
  const size = data.length / shape[0]
  return Array.from({ length: shape[0] }, (_, n) => Math.round(data[n * size + Math.floor(size / 2)] * FRAMES))
}

export const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i)

interface Report {
  streams: {
    codec_type: string
    codec_name: string
    pix_fmt?: string
    nb_read_frames?: string
    avg_frame_rate?: string
    sample_rate?: string
    color_space?: string
    color_transfer?: string
  }[]
  format: { format_name: string; duration: string; tags: Record<string, string> }
}

export const report = (bytes: Uint8Array) =>
  probed(
    bytes,
    'stream=codec_type,codec_name,pix_fmt,nb_read_frames,avg_frame_rate,sample_rate,color_space,color_transfer:format=format_name,duration:format_tags',
  ) as unknown as Report

/** Videos of all frames with two seconds of sound, as bytes; each is made once. */
export function createClips(engine: () => TestEngine): (format: string, codec: string) => Promise<Buffer> {
  const clips = new Map<string, Promise<Buffer>>()
  return (format, codec) => {
    const key = `${format} ${codec}`
    const made = clips.get(key) ?? makeClip(engine(), format, codec)
    clips.set(key, made)
    return made
  }
}

async function makeClip(engine: TestEngine, format: string, codec: string): Promise<Buffer> {
  const graph: GraphJson = {
    1: frames(),
    2: tone(5),
    3: create('1', { audio: ['2', 0] }),
    4: save('3', { format, 'format.codec': codec }),
  }
  return (await onlyFile(await engine.run(graph), '4')).bytes
}
