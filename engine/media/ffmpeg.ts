/**
 * What every call of ffmpeg has in common: quiet, bounded, and unable to follow what a media file points to: only containers
 * that hold their own data are opened, so a playlist or a script that names other files is refused.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { FileTags } from '../files/output-name.ts'
import { NodeError } from '../node/node-error.ts'

// FFmpeg's programs as child processes. A run is bounded in time, in what it may print and in what it may keep in memory,
// it ends soon after a cancel, and it leaves no process behind. What a program says about its failure is judged by the
// caller; a program that is not installed is refused here, with what to install.

export interface ToolRun {
  readonly program: string
  readonly args: readonly string[]
  /** What the node wants to do, for the message of a missing program: "reading 'a.mp3'". */
  readonly purpose: string
  readonly timeLimitMs: number
  /** Bytes for the program, made as fast as it takes them. */
  readonly input?: Iterable<Uint8Array>
  onOutput?(bytes: Buffer): void
  /** Throws when the run was cancelled. */
  checkpoint(): void
}

interface ToolEnd {
  readonly isDone: boolean
  /** The end of what the program printed as errors. */
  readonly complaint: string
}

// A cancel has to take effect within 200 ms.
const CANCEL_LOOK_MS = 50
const COMPLAINT_LENGTH = 16_384

function notInstalled(program: string, purpose: string): NodeError {
  const message =
    `${purpose} needs the program ${program}, which this server does not have. Install FFmpeg ` +
    '(Debian, Ubuntu: apt-get install ffmpeg; macOS: brew install ffmpeg; Windows: winget install ffmpeg) so that ' +
    'ffmpeg and ffprobe are on the PATH, then run the job again'
  return new NodeError('ModelDownloadError', message)
}

function tooSlow({ purpose, program, timeLimitMs }: ToolRun): NodeError {
  const message = `${purpose} took ${program} longer than ${timeLimitMs / 1000} seconds and was given up`
  return new NodeError('TimeoutError', message)
}

function isMissingProgram(error: unknown): boolean {
  const code = (error as { code?: unknown }).code
  return code === 'ENOENT' || code === 'EACCES'
}

/** Throws what the making of the input threw. A program that stops listening is judged by its exit code, not here. */
async function feed(child: ChildProcess, input: Iterable<Uint8Array>): Promise<void> {
  if (child.stdin === null) return
  let fault: { readonly error: unknown } | null = null
  const parts = input[Symbol.iterator]()
  // Only `next` is offered: a broken pipe must not be thrown into the source, from where it would come back as its fault.
  const watched = {
    next() {
      try {
        return parts.next()
      } catch (error) {
        fault = { error }
        throw error
      }
    },
    [Symbol.iterator]: () => watched,
  }
  try {
    await pipeline(Readable.from(watched), child.stdin)
  } catch {
    if (fault !== null) throw (fault as { readonly error: unknown }).error
  }
}

/** Resolves when the program has ended, however it ended; throws what made us end it. */
export async function runTool(run: ToolRun): Promise<ToolEnd> {
  const { program, args, purpose, timeLimitMs, input, onOutput, checkpoint } = run
  const stdio = [input === undefined ? 'ignore' : 'pipe', onOutput === undefined ? 'ignore' : 'pipe', 'pipe'] as const
  const child = spawn(program, args, { stdio: [...stdio], windowsHide: true })
  const ended = Promise.withResolvers<number | null>()
  let reason: { readonly error: unknown } | null = null
  let complaint = ''

  function stop(error: unknown): void {
    reason ??= { error }
    child.kill('SIGKILL')
  }
  function guard(work: () => void): void {
    if (reason !== null) return
    try {
      work()
    } catch (error) {
      stop(error)
    }
  }
  child.on('error', (error) => {
    reason ??= { error: isMissingProgram(error) ? notInstalled(program, purpose) : error }
    ended.resolve(null)
  })
  child.on('close', (code) => ended.resolve(code))
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    complaint = (complaint + text).slice(-COMPLAINT_LENGTH)
  })
  child.stdout?.on('data', (bytes: Buffer) => guard(() => onOutput?.(bytes)))
  const look = setInterval(() => guard(checkpoint), CANCEL_LOOK_MS)
  const limit = setTimeout(() => stop(tooSlow(run)), timeLimitMs)
  try {
    if (input !== undefined) await feed(child, input).catch(stop)
    const code = await ended.promise
    if (reason !== null) throw (reason as { readonly error: unknown }).error
    return { isDone: code === 0, complaint }
  } finally {
    clearInterval(look)
    clearTimeout(limit)
  }
}

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

// A folder for the files of one call, removed when the call ends: ffmpeg must be able to seek in what it writes.

export interface WorkFolder extends AsyncDisposable {
  file(name: string): string
}

export async function openWorkFolder(): Promise<WorkFolder> {
  const folder = await mkdtemp(join(tmpdir(), 'atelier-media-'))
  return {
    file: (name) => join(folder, name),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}

/** The largest file that may be made. ffmpeg is told too, and stops writing there. */
export const MAX_MADE_BYTES = 1_073_741_824

/** The whole file in memory of its own. */
export async function readMade(path: string, purpose: string): Promise<Uint8Array<ArrayBuffer>> {
  await using file = await open(path)
  const { size } = await file.stat()
  if (size >= MAX_MADE_BYTES) {
    throw new NodeError('OSError', `${purpose} made a file of more than ${MAX_MADE_BYTES / 1_048_576} MiB`)
  }
  const bytes = new Uint8Array(size)
  let at = 0
  while (at < size) {
    const { bytesRead } = await file.read(bytes, at, size - at, at)
    if (bytesRead === 0) break
    at += bytesRead
  }
  return bytes
}

const SPECIAL = /[=;#\\\n]/g
const escaped = (text: string) => text.replace(SPECIAL, '\\$&')

/** Container metadata as ffmpeg reads it from a file: a workflow easily outgrows what a command line may hold. */
export function toMetadataText(tags: FileTags): string {
  const lines = tags.map(([key, value]) => `${escaped(key)}=${escaped(value)}\n`)
  return `;FFMETADATA1\n${lines.join('')}`
}

/** Writes the file and gives the arguments that open it. */
export async function writeMetadataFile(path: string, tags: FileTags): Promise<string[]> {
  await writeFile(path, toMetadataText(tags))
  return ['-f', 'ffmetadata', '-i', `file:${path}`]
}
