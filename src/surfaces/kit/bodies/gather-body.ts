/**
 * The bytes of a body, gathered in one buffer of its own as they arrive. The declared length serves to refuse early and to
 * reserve address space; memory is used only as bytes arrive. A sender that is slower than a bad line is cut off, and the
 * bytes of a body that never completes are given back to the system at once.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { ServiceError } from '../../../domain/errors.ts'
import { type BodyClaim, claimOf } from './body-memory.ts'

interface GatherOptions {
  readonly maxBytes: number
  /** For the whole body. */
  readonly deadlineMs: number
}

// How long a sender has before its pace counts: a connection starts slowly.
const GRACE_MS = 15_000
// About a bad mobile line. A body of the largest size needs about ten times this pace to meet its deadline.
const MIN_BYTES_PER_MS = 16
const FIRST_BYTES = 65_536

export function gatherBody(stream: IncomingMessage, claim: BodyClaim, options: GatherOptions): Promise<Buffer> {
  const { maxBytes, deadlineMs } = options
  const declared = stream.headers['content-length']
  const declaredBytes = declared === undefined ? null : Number(declared)
  if (declaredBytes !== null && declaredBytes > maxBytes) return Promise.reject(tooLarge(maxBytes))
  if (stream.destroyed) return Promise.reject(malformed('the request ended before its body was complete'))
  try {
    claim.mustFit(declaredBytes ?? 0)
    if (stream.complete && stream.readableLength > 0) return Promise.resolve(takeBuffered(stream, claim, maxBytes))
  } catch (error) {
    return Promise.reject(error)
  }
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const bytes = new GrowingBytes(declaredBytes, maxBytes)
  const startedAtMs = performance.now()

  const onData = (chunk: Buffer) => {
    if (bytes.length + chunk.length > maxBytes) return fail(tooLarge(maxBytes))
    try {
      claim.take(chunk.length)
    } catch (error) {
      return fail(error)
    }
    bytes.add(chunk)
    claim.onTransferred(chunk.length)
  }
  const onEnd = () => settle(() => resolve(bytes.take()))
  const onBroken = () => fail(malformed('the request ended before its body was complete'))

  /** At every check the sender must be ahead of the slowest pace; the next one comes when it could first be behind. */
  const check = () => {
    const aheadMs = GRACE_MS + bytes.length / MIN_BYTES_PER_MS - (performance.now() - startedAtMs)
    if (aheadMs <= 0) fail(malformed('the body arrives too slowly; send the request again over a better line'))
    else pace = setTimeout(check, aheadMs)
  }
  let pace = setTimeout(check, GRACE_MS)
  const deadline = setTimeout(() => fail(malformed('the body took too long to arrive')), deadlineMs)

  const fail = (error: unknown) =>
    settle(() => {
      bytes.free()
      claim.release()
      reject(error)
    })
  const settle = (finish: () => void) => {
    clearTimeout(deadline)
    clearTimeout(pace)
    stream.off('data', onData).off('end', onEnd).off('error', onBroken).off('close', onBroken)
    // The rest of a refused body is handled by the code that sends the answer.
    if (!stream.readableEnded) stream.pause()
    finish()
  }
  stream.on('data', onData).on('end', onEnd).on('error', onBroken).on('close', onBroken)
  return promise
}

/** A small body usually comes with its head: then there is nothing to wait for, and nothing to time. */
function takeBuffered(stream: IncomingMessage, claim: BodyClaim, maxBytes: number): Buffer {
  if (stream.readableLength > maxBytes) throw tooLarge(maxBytes)
  claim.take(stream.readableLength)
  const bytes: Buffer = stream.read()
  claim.onTransferred(bytes.length)
  return bytes
}

/** Grows by doubling where the length was not declared. A body that came as one chunk is not copied. */
class GrowingBytes {
  length = 0
  readonly #maxBytes: number
  #capacity: number
  #only: Buffer | null = null
  #bytes: Buffer | null = null

  constructor(declaredBytes: number | null, maxBytes: number) {
    this.#maxBytes = maxBytes
    this.#capacity = declaredBytes ?? FIRST_BYTES
  }

  add(chunk: Buffer): void {
    if (this.length === 0) this.#only = chunk
    else {
      const bytes = this.#mustHold(this.length + chunk.length)
      this.#only?.copy(bytes, 0)
      this.#only = null
      chunk.copy(bytes, this.length)
    }
    this.length += chunk.length
  }

  #mustHold(length: number): Buffer {
    if (this.#bytes !== null && this.#bytes.length >= length) return this.#bytes
    while (this.#capacity < length) this.#capacity *= 2
    const before = this.#bytes
    this.#bytes = Buffer.allocUnsafeSlow(Math.min(this.#capacity, this.#maxBytes))
    if (before !== null) {
      before.copy(this.#bytes, 0, 0, this.length)
      freeBytes(before)
    }
    return this.#bytes
  }

  take(): Buffer {
    return this.#only ?? this.#bytes?.subarray(0, this.length) ?? Buffer.alloc(0)
  }

  free(): void {
    if (this.#bytes !== null) freeBytes(this.#bytes)
  }
}

// Smaller buffers may share their memory with others, and are collected soon enough.
const OWN_BYTES = 65_537

/**
 * Gives the memory of a body back now instead of at the next garbage collection, which may be minutes after the last request.
 * Only safe once nothing reads the bytes any more.
 */
export function freeBytes({ buffer, byteLength }: Buffer): void {
  if (byteLength >= OWN_BYTES && buffer instanceof ArrayBuffer) buffer.transfer(0)
}

function malformed(message: string): ServiceError {
  return new ServiceError('invalid_request', message)
}

function tooLarge(maxBytes: number): ServiceError {
  return new ServiceError('payload_too_large', `the body is larger than the limit of ${maxBytes} bytes`, {
    details: { max_bytes: maxBytes },
  })
}

// An answer may be ready before its request is wholly read: a refused upload, a body over the limit. Closing at once resets
// the connection, and many clients then lose the answer; reading on for ever lets a sender waste our time. So we read and
// drop a little more, and then close.

const LINGER_BYTES = 64 * 1024 * 1024
const LINGER_MS = 3_000

// Requests whose connection node would have closed behind the answer, as their sender asked.
const toBeClosed = new WeakSet<IncomingMessage>()

/** To be called before the answer is written: keeps node from closing right behind it. */
export function keepOpenFor(request: IncomingMessage, response: ServerResponse): void {
  if (request.complete || !hasBody(request)) return
  if (!response.shouldKeepAlive) toBeClosed.add(request)
  response.shouldKeepAlive = true
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** To be called once the answer has been written. */
export function dropRestOf(request: IncomingMessage): void {
  const { socket } = request
  if (request.destroyed || socket.destroyed) return
  const finish = () => {
    if (toBeClosed.has(request)) socket.destroySoon()
  }
  if (request.complete) {
    finish()
    return
  }
  let left = LINGER_BYTES
  const { onTransferred } = claimOf(request)
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  const stop = () => clearTimeout(timer)
  request.on('data', (chunk: Buffer) => {
    left -= chunk.length
    onTransferred(chunk.length)
    if (left < 0) socket.destroy()
  })
  request.once('end', () => {
    stop()
    // The connection may carry many more requests.
    socket.off('close', stop)
    finish()
  })
  socket.once('close', stop)
  request.resume()
}
