/**
 * How a node fails. `exceptionType` is the name Python would show (`ValueError`, `PIL.UnidentifiedImageError`), because
 * clients match on it; the message is safe to show and holds no path of this machine.
 */
import { fileURLToPath } from 'node:url'
import { PythonError } from '../../lib/python/values.ts'

export class NodeError extends Error {
  readonly exceptionType: string
  /** Set when the error happened on another thread. */
  readonly traceback: string | null

  constructor(exceptionType: string, message: string, traceback: string | null = null) {
    super(message)
    this.name = 'NodeError'
    this.exceptionType = exceptionType
    this.traceback = traceback
  }
}

/** Pillow's refusal of 8-bit pixels with so many channels. */
export function unknownPixels(channels: number): NodeError {
  return new NodeError('TypeError', `Cannot handle this data type: (1, 1, ${channels}), |u1`)
}

/** A call has used up the processor time that its class may take. */
export function usedUpCpu(classType: string, limitMs: number): NodeError {
  return new NodeError(
    'TimeoutError',
    `${classType} used more than ${limitMs / 1000} s of processor time, the most that it may take; use a simpler expression or a shorter text`,
  )
}

/** Thrown inside a node when its run was cancelled; never reaches a client as an error. */
export class Interrupted extends Error {
  constructor() {
    super('the run was cancelled')
    this.name = 'Interrupted'
  }
}

/** A failure in the form that crosses threads. */
export interface FailureText {
  readonly exceptionType: string
  readonly message: string
  readonly traceback: string
}

/** Where this service is installed. */
const OWN_FOLDER = fileURLToPath(new URL('../../', import.meta.url))
const MAX_FRAMES = 16
const MAX_MESSAGE_LENGTH = 4000

/** What a JavaScript error is called in the vocabulary of clients. Anything else is a RuntimeError. */
const PYTHON_NAMES: Readonly<Record<string, string>> = {
  TypeError: 'TypeError',
  RangeError: 'ValueError',
  SyntaxError: 'ValueError',
}

function hasErrorCode(error: unknown): error is Error & { code: string } {
  return error instanceof Error && typeof (error as { code?: unknown }).code === 'string'
}

function describe(error: unknown): { exceptionType: string; message: string } {
  if (error instanceof NodeError) return { exceptionType: error.exceptionType, message: error.message }
  // Errors of the operating system quote paths: only their code is shown.
  if (hasErrorCode(error) && 'syscall' in error)
    return {
      exceptionType: error.code === 'ENOENT' ? 'FileNotFoundError' : 'OSError',
      message: `a file of this run could not be read (${error.code})`,
    }
  if (error instanceof PythonError) return { exceptionType: error.type, message: error.message }
  if (error instanceof Error) {
    return { exceptionType: PYTHON_NAMES[error.name] ?? 'RuntimeError', message: error.message }
  }
  return { exceptionType: 'RuntimeError', message: `a node threw ${String(error)}` }
}

// "    at shrink (file:///…/nodes/shrink.ts:10:3)" becomes "  in shrink, shrink.ts line 10".
const FRAME = /^\s*at (?:async )?(?:(.+?) \()?(?:file:\/\/)?(.+?):(\d+):\d+\)?$/

function framesIn(stack: string, folders: readonly string[]): string[] {
  const frames: string[] = []
  for (const line of stack.split('\n')) {
    const match = FRAME.exec(line)
    const folder = folders.find((one) => match?.[2].startsWith(one))
    if (match === null || folder === undefined || match[2].includes('/node_modules/')) continue
    frames.push(`  in ${match[1] ?? 'module'}, ${match[2].slice(folder.length)} line ${match[3]}`)
    if (frames.length === MAX_FRAMES) break
  }
  return frames
}

/** A message may quote a path, such as that of a module that is missing: where files are on this machine is not shown. */
function hidePaths(message: string, folders: readonly string[]): string {
  const shown = folders.reduce(
    (text, folder) => text.replaceAll(`file://${folder}`, '').replaceAll(folder, ''),
    message,
  )
  return shown.replaceAll(`file://${OWN_FOLDER}`, '').replaceAll(OWN_FOLDER, '')
}

/**
 * The traceback shows the frames inside the given folders (those of whoever wrote the node), with names relative to them.
 * Frames of our own code are left out; the message says what was wrong.
 */
export function toFailureText(error: unknown, folders: readonly string[] = []): FailureText {
  const { exceptionType, message } = describe(error)
  const shown = hidePaths(message, folders).slice(0, MAX_MESSAGE_LENGTH)
  if (error instanceof NodeError && error.traceback !== null) {
    return { exceptionType, message: shown, traceback: error.traceback }
  }
  const frames = error instanceof Error && typeof error.stack === 'string' ? framesIn(error.stack, folders) : []
  return { exceptionType, message: shown, traceback: [...frames, `${exceptionType}: ${shown}`].join('\n') }
}

/** What one output slot may hold; every node after it may run once per element. */
const MAX_LIST_LENGTH = 100_000

export function refuseLongList(length: number): void {
  if (length <= MAX_LIST_LENGTH) return
  throw new NodeError(
    'MemoryError',
    `the list would have ${length} elements; at most ${MAX_LIST_LENGTH} are allowed. Use shorter lists`,
  )
}
