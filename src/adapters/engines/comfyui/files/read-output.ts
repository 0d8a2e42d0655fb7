/**
 * The bytes of a file that a node reported. A try that breaks off, stalls or crawls is given up, and the next one continues where
 * it ended if the server allows that and the file is still the same. After the last try the attempt is lost: another server, or
 * this one later, can make the file again.
 */

import { sleep } from '../../../../../lib/waiting/sleep.ts'
import { EngineLostError } from '../../../../domain/engine/engine-lost-error.ts'
import type { ComfyBounds } from '../comfy-bounds.ts'
import { silenceError, watchLiveness } from '../health/fitness.ts'
import { type ComfyApi, type FileLocation, viewPath } from '../wire/comfy-api.ts'
import { CallError, type StreamedAnswer, toCallError } from '../wire/comfy-http.ts'

interface Progress {
  received: number
  /** Of the whole file; null until an answer says it. */
  sizeBytes: number | null
  etag: string | null
}

export async function* readOutput(
  api: ComfyApi,
  location: FileLocation,
  bounds: ComfyBounds,
): AsyncGenerator<Uint8Array> {
  const progress: Progress = { received: 0, sizeBytes: null, etag: null }
  let failure: unknown = null
  using life = watchLiveness({ api, bounds })
  for (let attempt = 0; attempt < bounds.fileTries; attempt++) {
    if (attempt > 0) await sleep(bounds.fileRetryMs * 2 ** (attempt - 1))
    try {
      yield* readOnce(api, location, { bounds, progress, silent: life.silent })
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
  location: FileLocation,
  { bounds, progress, silent }: Try,
): AsyncGenerator<Uint8Array> {
  const over = new AbortController()
  const answer = await api.http.stream(viewPath(location), {
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

/** How many bytes of the answer were received before. Throws when the answer cannot continue what was received. */
function startAt({ status, headers }: StreamedAnswer, progress: Progress): number {
  if (status !== 200 && status !== 206) throw new CallError('status', `/view answered ${status}`, { status })
  const etag = one(headers.etag)
  const isSame = progress.etag === null || etag === progress.etag
  if (progress.received > 0 && !isSame) throw new CallError('too_large', '/view: the file changed while it was read')
  progress.etag ??= etag
  const length = one(headers['content-length'])
  if (status === 200) progress.sizeBytes = length === null ? null : Number(length)
  // A range says how large the whole file is. It overrules an earlier length, which may have been wrong.
  else progress.sizeBytes = sizeInRange(headers) ?? progress.sizeBytes
  return status === 200 ? progress.received : 0
}

const UNSATISFIABLE = 416

/** Asked for bytes after the last one, a server answers that there are none: then everything was received. */
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

/** Most files that end too early are noticed by the HTTP client; this finds the others. */
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

/** Trickling bytes never trip an idle timer, so the bytes that come in a window of time are counted. */
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
