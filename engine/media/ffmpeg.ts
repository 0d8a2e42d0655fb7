/**
 * What every call of ffmpeg has in common: quiet, bounded, and unable to follow what a media file points to: only containers
 * that hold their own data are opened, so a playlist or a script that names other files is refused.
 */
import { NodeError } from '../node/node-error.ts'
import { runTool, type ToolEnd, type ToolRun } from './tool.ts'

/** What media work needs of its surroundings. */
export interface MediaWork {
  checkpoint(): void
}

export interface MediaFile {
  readonly path: string
  /** As the graph names it, for messages. */
  readonly name: string
}

const WORK_LIMIT_MS = 1_800_000
// One block of memory; a frame of 16384 x 16384 in 16 bit fits.
const LARGEST_BLOCK = 2_147_483_647

const COMMON = ['-hide_banner', '-loglevel', 'error', '-max_alloc', String(LARGEST_BLOCK)] as const

const CONTAINERS = [
  'aac,ac3,aiff,amr,apng,asf,au,avi,caf,dv,eac3,flac,flv,gif,h264,hevc,ivf,m4v,matroska,mov,mp3,mpeg,mpegts,mpegvideo',
  'mxf,nut,obu,ogg,rm,swf,tta,voc,w64,wav,wv,y4m,yuv4mpegpipe',
].join(',')

/** Arguments that open a file of the caller's. */
export function openArgs({ path }: MediaFile): string[] {
  return ['-protocol_whitelist', 'file', '-format_whitelist', CONTAINERS, '-i', `file:${path}`]
}

type Call = Omit<ToolRun, 'program' | 'timeLimitMs'>

export function runFfmpeg(call: Call): Promise<ToolEnd> {
  const args = [...COMMON, '-nostdin', '-y', ...call.args]
  return runTool({ ...call, program: 'ffmpeg', args, timeLimitMs: WORK_LIMIT_MS })
}

const PROBE_LIMIT_MS = 120_000

export function runFfprobe(call: Call): Promise<ToolEnd> {
  return runTool({ ...call, program: 'ffprobe', args: [...COMMON, ...call.args], timeLimitMs: PROBE_LIMIT_MS })
}

/** The file is damaged, or none that can be read. */
export function unreadable({ name }: MediaFile): NodeError {
  return new NodeError('av.error.InvalidDataError', `Invalid data found when processing input: '${name}'`)
}

const MISSING_ENCODER = /Unknown encoder '([^']+)'/
const LOCAL_PATH = /(?:file:)?(?:[A-Za-z]:)?[\\/][^\s:'"]*/g
// Some encoders greet and report before they fail.
const CHATTER = /\[(?:info|warn)\]/
const MAX_SHOWN = 300

/** Why an encoder refused, in its own words without paths. */
export function encodingFailed(purpose: string, { complaint }: ToolEnd): NodeError {
  const encoder = MISSING_ENCODER.exec(complaint)?.[1]
  if (encoder !== undefined) {
    const message = `${purpose} needs the encoder ${encoder}, which this server's ffmpeg was built without. Install a full build of FFmpeg, then run the job again`
    return new NodeError('ModelDownloadError', message)
  }
  const lines = complaint.split('\n').filter((line) => line.trim() !== '' && !CHATTER.test(line))
  const shown = (lines[0] ?? 'no reason given').replace(LOCAL_PATH, '…').slice(0, MAX_SHOWN)
  return new NodeError('av.error.ExternalError', `${purpose} failed: ${shown}`)
}
