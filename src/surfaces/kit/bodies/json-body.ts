/**
 * Reads a JSON body whatever its Content-Type says, losslessly and within bounds: bytes, nesting, values, time, and the memory
 * that all bodies share. Refuses with invalid_request, payload_too_large or overloaded. A large body is read into values a slice
 * at a time, so that nobody else waits for it; its bytes are given back to the system as soon as they are read.
 */
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  keepNumber,
  type NumberText,
  parseLosslessJson,
} from '../../../../lib/json/lossless-json.ts'
import {
  BACKSLASH,
  CLOSING_BRACE,
  CLOSING_BRACKET,
  COMMA,
  type NumberReader,
  OPENING_BRACE,
  OPENING_BRACKET,
  QUOTE,
  type Read,
} from '../../../../lib/json/read-json.ts'
import {
  type JsonFault,
  JsonLimitError,
  JsonRepeatError,
  MAX_NAME_BYTES,
  MAX_SPACE,
  readJsonSteps,
} from '../../../../lib/json/read-json-steps.ts'
import { finishNow } from '../../../../lib/waiting/turns.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { claimOf } from './body-memory.ts'
import { freeBytes, gatherBody } from './gather-body.ts'

interface JsonBodyOptions {
  readonly maxBytes: number
  /** How long the whole body may take; a sender that drips bytes must not hold a request open for hours. */
  readonly deadlineMs?: number
}

export interface JsonReading<T> {
  /** For texts that are read in one go; null: none is, and a member that occurs twice is refused with JsonRepeatError. */
  readonly parse: ((text: string) => Read<T>) | null
  /** For numbers of texts that are read in slices. */
  readonly readNumber: NumberReader<T>
  readonly maxValues: number
}

const DEADLINE_MS = 60_000
// Far above any graph; keeps every recursive walk over the parsed value within the stack.
const MAX_DEPTH = 200
// Above what a graph of the most nodes needs.
const MAX_VALUES = 500_000
// A graph has at most 20,000 nodes; much code walks over the members of an object in one go.
const MAX_MEMBERS = 25_000
const MAX_LONG_DIGITS = 100_000
const BYTE_ORDER_MARK = 0xfeff
const MARK_BYTES = Buffer.from('\ufeff')
// Read within a few milliseconds, whatever it holds.
const SMALL_BYTES = 65_536

const LOSSLESS: JsonReading<number | bigint | NumberText> = {
  parse: parseLosslessJson as JsonReading<number | bigint | NumberText>['parse'],
  readNumber: keepNumber,
  maxValues: MAX_VALUES,
}

export async function readJsonBody(
  request: { readonly raw: IncomingMessage },
  options: JsonBodyOptions,
): Promise<JsonValue> {
  const bytes = await readBodyBytes(request.raw, options)
  return parseLosslessBody(request.raw, bytes)
}

/** Parses a body that has been read, within the same bounds. Its bytes must not be used afterwards. */
export async function parseLosslessBody(request: IncomingMessage, bytes: Buffer): Promise<JsonValue> {
  try {
    return (await parseBody(request, bytes, LOSSLESS)) as JsonValue
  } finally {
    freeBytes(bytes)
  }
}

/** Parses a body that has been read, within the same bounds. */
export async function parseBody<T>(request: IncomingMessage, bytes: Buffer, reading: JsonReading<T>): Promise<Read<T>> {
  if (bytes.length === 0) throw malformed('the body is empty; send a JSON object')
  if (!isUtf8(bytes)) throw malformed('the body is not valid UTF-8')
  const { maxValues } = reading
  const limits = { maxDepth: MAX_DEPTH, maxValues, maxMembers: MAX_MEMBERS, maxLongDigits: MAX_LONG_DIGITS }
  try {
    const { parse, readNumber } = reading
    if (parse === null || bytes.length > SMALL_BYTES) {
      const work = readJsonSteps(withoutMark(bytes), { readNumber, limits, refusesRepeated: parse === null })
      return bytes.length > SMALL_BYTES ? await claimOf(request).turns.run(work) : finishNow(work)
    }
    const fault = findShapeFault(bytes, limits)
    if (fault !== null) throw new JsonLimitError(fault)
    const text = bytes.toString('utf8')
    return parse(text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text)
  } catch (cause) {
    if (cause instanceof JsonRepeatError) throw cause
    if (cause instanceof JsonLimitError) throw FAULTS[cause.fault](maxValues)
    throw new ServiceError('invalid_request', 'the body is not valid JSON', { cause })
  }
}

function withoutMark(bytes: Buffer): Buffer {
  return bytes.subarray(0, MARK_BYTES.length).equals(MARK_BYTES) ? bytes.subarray(MARK_BYTES.length) : bytes
}

function malformed(message: string): ServiceError {
  return new ServiceError('invalid_request', message)
}

function tooMuch(message: string, details: Readonly<Record<string, number>>): ServiceError {
  return new ServiceError('payload_too_large', message, { details })
}

const FAULTS: Readonly<Record<JsonFault, (maxValues: number) => ServiceError>> = {
  too_deep: () => malformed(`the body is nested deeper than ${MAX_DEPTH} levels`),
  too_many_values: (max) => tooMuch(`the body holds more than ${max} values`, { max_values: max }),
  too_many_members: () =>
    tooMuch(`an object in the body has more than ${MAX_MEMBERS} members`, { max_members: MAX_MEMBERS }),
  too_many_digits: () => malformed('the body holds numbers with far too many digits'),
  too_much_space: () => malformed(`the body holds more than ${MAX_SPACE} white-space characters in a row`),
  too_long_name: () => malformed(`the name of a member is longer than ${MAX_NAME_BYTES} bytes`),
}

/** The whole body as it came. */
export function readBodyBytes(stream: IncomingMessage, options: JsonBodyOptions): Promise<Buffer> {
  return gatherBody(stream, claimOf(stream), { deadlineMs: DEADLINE_MS, ...options })
}

/**
 * Looks over a JSON text before it is parsed. Parsing happens in one go on the thread that serves everybody, and what it
 * costs depends on the number of values and on long numbers far more than on the bytes: a text within its size limit could
 * hold the service up for seconds. It sees brackets, commas and digits outside strings only; a malformed text is left to
 * the parser.
 */
interface JsonShapeLimits {
  readonly maxDepth: number
  /** Members and elements at every level together, give or take one per bracket. */
  readonly maxValues: number
  /** Digits of all numbers that are longer than any seed, together: reading one takes time quadratic in its length. */
  readonly maxLongDigits: number
}

type JsonShapeFault = 'too_deep' | 'too_many_values' | 'too_many_digits'

// As many digits as 2^64 - 1 has.
const SEED_DIGITS = 20

const ZERO = 0x30
const NINE = 0x39

export function findShapeFault(text: Buffer, limits: JsonShapeLimits): JsonShapeFault | null {
  const { maxDepth, maxValues, maxLongDigits } = limits
  let depth = 0
  let values = 0
  let longDigits = 0
  for (let at = 0; at < text.length; at++) {
    const byte = text[at]
    if (byte === QUOTE) at = endOfString(text, at + 1)
    else if (byte === COMMA) values++
    else if (byte === OPENING_BRACE || byte === OPENING_BRACKET) {
      depth++
      values++
      if (depth > maxDepth) return 'too_deep'
    } else if (byte === CLOSING_BRACE || byte === CLOSING_BRACKET) depth--
    else if (byte >= ZERO && byte <= NINE) {
      const end = endOfDigits(text, at + 1)
      if (end - at > SEED_DIGITS) longDigits += end - at
      if (longDigits > maxLongDigits) return 'too_many_digits'
      at = end - 1
    }
    if (values > maxValues) return 'too_many_values'
  }
  return null
}

/** The index of the closing quote, or the end of the text. */
function endOfString(text: Buffer, from: number): number {
  let at = from
  while (at < text.length && text[at] !== QUOTE) at += text[at] === BACKSLASH ? 2 : 1
  return at
}

function endOfDigits(text: Buffer, from: number): number {
  let at = from
  while (at < text.length && text[at] >= ZERO && text[at] <= NINE) at++
  return at
}

/** Throws invalid_request. */
export function mustBeObject(body: JsonValue): JsonObject {
  if (isJsonObject(body)) return body
  throw new ServiceError('invalid_request', 'the body must be a JSON object')
}

export async function readJsonObject(...given: Parameters<typeof readJsonBody>): Promise<JsonObject> {
  return mustBeObject(await readJsonBody(...given))
}
