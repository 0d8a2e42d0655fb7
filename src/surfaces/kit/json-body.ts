/**
 * Reads a JSON body whatever its Content-Type says, losslessly and within bounds: bytes, nesting, values, time. Refuses with
 * invalid_request or payload_too_large. The declared length is believed only to refuse early, never to allocate.
 */
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { ServiceError } from '../../domain/errors.ts'
import { type JsonValue, parseLosslessJson } from '../../lib/lossless-json.ts'
import { findShapeFault, type JsonShapeFault } from './json-shape.ts'

export interface JsonBodyOptions {
  readonly maxBytes: number
  /** How long the whole body may take; a sender that drips bytes must not hold a request open for hours. */
  readonly deadlineMs?: number
}

const DEADLINE_MS = 60_000
// Far above any graph; keeps every recursive walk over the parsed value within the stack.
const MAX_DEPTH = 200
// Above what a graph of the most nodes needs, and still parsed in a fraction of a second.
const MAX_VALUES = 500_000
const MAX_LONG_DIGITS = 100_000
const SHAPE = { maxDepth: MAX_DEPTH, maxValues: MAX_VALUES, maxLongDigits: MAX_LONG_DIGITS }
const BYTE_ORDER_MARK = 0xfeff

export async function readJsonBody(
  request: { readonly raw: IncomingMessage },
  options: JsonBodyOptions,
): Promise<JsonValue> {
  const bytes = await readBodyBytes(request.raw, options)
  return parseBody(bytes, parseLosslessJson)
}

/** Parses a body that has been read, within the same bounds. */
export function parseBody<Value>(bytes: Buffer, parse: (text: string) => Value): Value {
  if (bytes.length === 0) throw malformed('the body is empty; send a JSON object')
  if (!isUtf8(bytes)) throw malformed('the body is not valid UTF-8')
  const fault = findShapeFault(bytes, SHAPE)
  if (fault !== null) throw FAULTS[fault]()
  const text = bytes.toString('utf8')
  try {
    return parse(text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text)
  } catch (cause) {
    throw new ServiceError('invalid_request', 'the body is not valid JSON', { cause })
  }
}

function malformed(message: string): ServiceError {
  return new ServiceError('invalid_request', message)
}

function tooLarge(maxBytes: number): ServiceError {
  return new ServiceError('payload_too_large', `the body is larger than the limit of ${maxBytes} bytes`, {
    details: { max_bytes: maxBytes },
  })
}

const FAULTS: Readonly<Record<JsonShapeFault, () => ServiceError>> = {
  too_deep: () => malformed(`the body is nested deeper than ${MAX_DEPTH} levels`),
  too_many_values: () =>
    new ServiceError('payload_too_large', `the body holds more than ${MAX_VALUES} values`, {
      details: { max_values: MAX_VALUES },
    }),
  too_many_digits: () => malformed('the body holds numbers with far too many digits'),
}

/** The whole body as it came. */
export function readBodyBytes(stream: IncomingMessage, options: JsonBodyOptions): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const { maxBytes } = options
  if (Number(stream.headers['content-length']) > maxBytes) return Promise.reject(tooLarge(maxBytes))
  if (stream.destroyed) return Promise.reject(malformed('the request ended before its body was complete'))
  const chunks: Buffer[] = []
  let size = 0
  const onData = (chunk: Buffer) => {
    size += chunk.length
    if (size > maxBytes) settle(() => reject(tooLarge(maxBytes)))
    else chunks.push(chunk)
  }
  const onEnd = () => settle(() => resolve(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, size)))
  const onBroken = () => settle(() => reject(malformed('the request ended before its body was complete')))
  const timer = setTimeout(
    () => settle(() => reject(malformed('the body took too long to arrive'))),
    options.deadlineMs ?? DEADLINE_MS,
  )
  const settle = (finish: () => void) => {
    clearTimeout(timer)
    stream.off('data', onData).off('end', onEnd).off('error', onBroken).off('close', onBroken)
    // What still arrives of a refused body is dealt with by whoever sends the answer.
    if (!stream.readableEnded) stream.pause()
    finish()
  }
  stream.on('data', onData).on('end', onEnd).on('error', onBroken).on('close', onBroken)
  return promise
}
