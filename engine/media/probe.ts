/** What a media file holds, from its container and its packets: nothing is shown or heard. */
import { NodeError } from '../node/node-error.ts'
import { type MediaFile, type MediaWork, openArgs, runFfprobe, unreadable } from './ffmpeg.ts'

export interface AudioStream {
  readonly index: number
  readonly codec: string
  readonly channels: number
  readonly sampleRate: number
}

export interface VideoStream {
  readonly index: number
  readonly codec: string
  /** As shown: after a rotation that the file asks for. */
  readonly width: number
  readonly height: number
  readonly bitDepth: 8 | 10
  /** Average rate in frames per second. */
  readonly fps: number
  readonly transfer: string
  /** Packets, one frame each in nearly every file; 0 unless they were counted. */
  readonly packets: number
}

export interface Probe {
  readonly containers: readonly string[]
  /** Seconds. */
  readonly duration: number
  readonly video: VideoStream | null
  readonly audio: readonly AudioStream[]
}

const ENTRIES = [
  'stream=index,codec_type,codec_name,width,height,pix_fmt,avg_frame_rate,r_frame_rate,nb_read_packets,channels',
  'sample_rate,color_transfer:stream_side_data=rotation:stream_disposition=attached_pic:format=format_name,duration',
].join(',')
const MAX_REPORT_BYTES = 4_194_304

type Fields = Readonly<Record<string, unknown>>

const text = (value: unknown) => (typeof value === 'string' ? value : '')
const fieldsOf = (value: unknown) => (typeof value === 'object' && value !== null ? (value as Fields) : {})
const listOf = (value: unknown) => (Array.isArray(value) ? value.map(fieldsOf) : [])

/** Numbers come as numbers or as text; what is absent or `N/A` is 0. */
function number(value: unknown): number {
  const read = Number(value ?? 0)
  return Number.isFinite(read) ? read : 0
}

/** `30000/1001`; 0 when unknown. */
function fraction(value: unknown): number {
  const [top, bottom = '1'] = text(value).split('/')
  const read = Number(top) / Number(bottom)
  return Number.isFinite(read) && read > 0 ? read : 0
}

// The depth stands in the name: yuv420p10le, p010le, gray12be, rgb48le.
const DEEP_FORMAT = /(?:p|gray|rgb|bgr|gbrp|gbrap|ya)0?(?:9|10|12|14|16|32|48|64)(?:le|be)$/

function toVideo(stream: Fields): VideoStream {
  const isSideways = listOf(stream.side_data_list).some(({ rotation }) => Math.abs(number(rotation)) % 180 === 90)
  const [width, height] = [number(stream.width), number(stream.height)]
  return {
    index: number(stream.index),
    codec: text(stream.codec_name),
    width: isSideways ? height : width,
    height: isSideways ? width : height,
    bitDepth: DEEP_FORMAT.test(text(stream.pix_fmt)) ? 10 : 8,
    // As upstream: a file without a rate plays one frame a second.
    fps: fraction(stream.avg_frame_rate) || fraction(stream.r_frame_rate) || 1,
    transfer: text(stream.color_transfer),
    packets: number(stream.nb_read_packets),
  }
}

function toAudio(stream: Fields): AudioStream {
  return {
    index: number(stream.index),
    codec: text(stream.codec_name),
    channels: number(stream.channels),
    sampleRate: number(stream.sample_rate),
  }
}

/** Pictures on a cover are streams too, but no film. */
function isFilm(stream: Fields): boolean {
  return stream.codec_type === 'video' && number(fieldsOf(stream.disposition).attached_pic) === 0
}

function toProbe(report: Fields): Probe {
  const streams = listOf(report.streams)
  const film = streams.find(isFilm)
  const video = film === undefined ? null : toVideo(film)
  const format = fieldsOf(report.format)
  return {
    containers: text(format.format_name).split(','),
    duration: number(format.duration) || (video === null ? 0 : video.packets / video.fps),
    video,
    audio: streams
      .filter(({ codec_type: type }) => type === 'audio')
      .map(toAudio)
      .filter(({ channels, sampleRate }) => channels > 0 && sampleRate > 0),
  }
}

/** Counting packets reads the whole file; containers only promise a number. */
export function probeFrames(file: MediaFile, work: MediaWork): Promise<Probe> {
  return probe(file, work, ['-count_packets'])
}

export function probeMedia(file: MediaFile, work: MediaWork): Promise<Probe> {
  return probe(file, work, [])
}

async function probe(file: MediaFile, { checkpoint }: MediaWork, options: readonly string[]): Promise<Probe> {
  const parts: Buffer[] = []
  let size = 0
  const { isDone } = await runFfprobe({
    args: [...options, '-show_entries', ENTRIES, '-of', 'json', ...openArgs(file)],
    purpose: `reading '${file.name}'`,
    checkpoint,
    onOutput(bytes) {
      size += bytes.length
      if (size > MAX_REPORT_BYTES) throw new NodeError('ValueError', `'${file.name}' holds too many streams`)
      parts.push(bytes)
    },
  })
  if (!isDone) throw unreadable(file)
  return toProbe(fieldsOf(JSON.parse(Buffer.concat(parts).toString('utf8'))))
}
