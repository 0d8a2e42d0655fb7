/**
 * FFmpeg's programs as child processes. A run is bounded in time, in what it may print and in what it may keep in memory,
 * it ends soon after a cancel, and it leaves no process behind. What a program says about its failure is judged by the
 * caller; a program that is not installed is refused here, with what to install.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { NodeError } from '../node/node-error.ts'

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

export interface ToolEnd {
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
