/**
 * The bytes of a file that a node reported. A try that breaks off, stands still or crawls is given up and the next goes on
 * where it ended, when the server allows that and the file is still the same. After the last one the attempt is lost:
 * another server, or this one later, can make the file anew.
 */

import { sleep } from '../../../../../lib/sleep.ts'
import { EngineLostError } from '../../../../domain/engine/engine-lost-error.ts'
import type { ComfyBounds } from '../comfy-bounds.ts'
import { silenceError, watchLife } from '../health/liveness-watch.ts'
import { type ComfyApi, type FilePlace, viewPath } from '../wire/comfy-api.ts'
import { CallError, type StreamedAnswer, toCallError } from '../wire/comfy-http.ts'

interface Progress {
  received: number
  /** Of the whole file; null as long as no answer said. */
  sizeBytes: number | null
  etag: string | null
}

export async function* readFile(api: ComfyApi, place: FilePlace, bounds: ComfyBounds): AsyncGenerator<Uint8Array> {
  const progress: Progress = { received: 0, sizeBytes: null, etag: null }
  let failure: unknown = null
  using life = watchLife({ api, bounds })
  for (let attempt = 0; attempt < bounds.fileTries; attempt++) {
    if (attempt > 0) await sleep(bounds.fileRetryMs * 2 ** (attempt - 1))
    try {
      yield* readOnce(api, place, { bounds, progress, silent: life.silent })
      return
    } catch (error) {
      failure = life.silent.aborted ? silenceError({ bounds }) : toCallError(error, '/view')
      if (life.silent.aborted || (failure as CallError).fault === 'too_large') break
    }
  }
  throw new EngineLostError(
    'output_unreadable',
    `the engine did not hand out an output: ${(failure as Error).message}`,
    {
      cause: failure,
    },
  )
}

interface Try {
  readonly bounds: ComfyBounds
  readonly progress: Progress
  /** Aborted when the server has not answered anything for too long. */
  readonly silent: AbortSignal
}

async function* readOnce(
  api: ComfyApi,
  place: FilePlace,
  { bounds, progress, silent }: Try,
): AsyncGenerator<Uint8Array> {
  const over = new AbortController()
  const answer = await api.http.stream(viewPath(place), {
    headers: progress.received === 0 ? {} : rangeHeaders(progress),
    firstByteMs: bounds.fileFirstByteMs,
    idleMs: bounds.fileIdleMs,
    signal: AbortSignal.any([over.signal, silent]),
  })
  const pace = watchPace(bounds, () => over.abort())
  try {
    if (isAtEnd(answer, progress)) return
    const skip = startAt(answer, progress)
    yield* take(answer, { skip, progress, bounds, silent, onBytes: pace.count })
    checkWhole(progress)
  } catch (error) {
    throw pace.isTooSlow()
      ? new CallError('timeout', `/view is slower than ${bounds.fileMinBytesPerSecond} bytes per second`)
      : error
  } finally {
    pace.stop()
    answer.body.destroy()
  }
}

function rangeHeaders({ received, etag }: Progress): Record<string, string> {
  return { range: `bytes=${received}-`, ...(etag === null ? {} : { 'if-range': etag }) }
}

/** How many bytes of the answer were received before. Throws when it is no answer to build on. */
function startAt({ status, headers }: StreamedAnswer, progress: Progress): number {
  if (status !== 200 && status !== 206) throw new CallError('status', `/view answered ${status}`, { status })
  const etag = one(headers.etag)
  const isSame = progress.etag === null || etag === progress.etag
  if (progress.received > 0 && !isSame) throw new CallError('too_large', '/view: the file changed while it was read')
  progress.etag ??= etag
  const length = one(headers['content-length'])
  if (status === 200) progress.sizeBytes = length === null ? null : Number(length)
  // A range says how large the whole is, and it says it anew: a length that was promised before may have been wrong.
  else progress.sizeBytes = sizeInRange(headers) ?? progress.sizeBytes
  return status === 200 ? progress.received : 0
}

const UNSATISFIABLE = 416

/** Asked for what comes after the last byte, a server answers that there is nothing. */
function isAtEnd({ status, headers }: StreamedAnswer, { received }: Progress): boolean {
  return status === UNSATISFIABLE && received > 0 && sizeInRange(headers) === received
}

function sizeInRange(headers: StreamedAnswer['headers']): number | null {
  const size = /\/(\d+)$/.exec(one(headers['content-range']) ?? '')?.[1]
  return size === undefined ? null : Number(size)
}

async function* take(
  { body }: StreamedAnswer,
  { skip, progress, bounds, onBytes }: { skip: number; onBytes: (count: number) => void } & Try,
): AsyncGenerator<Uint8Array> {
  let toSkip = skip
  for await (const part of body) {
    onBytes(part.byteLength)
    if (toSkip >= part.byteLength) {
      toSkip -= part.byteLength
      continue
    }
    const fresh = toSkip === 0 ? part : part.subarray(toSkip)
    toSkip = 0
    progress.received += fresh.byteLength
    if (progress.received > bounds.maxFileBytes)
      throw new CallError('too_large', `/view: more than ${bounds.maxFileBytes} bytes`)
    yield fresh
  }
}

/** A file without its end is no file; undici notices most such ends by itself. */
function checkWhole({ received, sizeBytes }: Progress): void {
  if (sizeBytes !== null && received !== sizeBytes) {
    throw new CallError('broken', `/view: ${received} of ${sizeBytes} bytes came`)
  }
}

function one(value: string | string[] | undefined): string | null {
  return typeof value === 'string' ? value : null
}

interface Pace {
  count(bytes: number): void
  isTooSlow(): boolean
  stop(): void
}

/** Bytes that trickle keep every idle timer quiet: what counts is how many came in a window. */
function watchPace({ fileMinBytesPerSecond, filePaceWindowMs }: ComfyBounds, onTooSlow: () => void): Pace {
  const least = (fileMinBytesPerSecond * filePaceWindowMs) / 1000
  let inWindow = 0
  let isTooSlow = false
  const timer = setInterval(() => {
    isTooSlow = inWindow < least
    inWindow = 0
    if (isTooSlow) onTooSlow()
  }, filePaceWindowMs)
  return {
    count(bytes) {
      inWindow += bytes
    },
    isTooSlow: () => isTooSlow,
    stop: () => clearInterval(timer),
  }
}
