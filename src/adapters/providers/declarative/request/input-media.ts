/**
 * The pictures of an input that are sent on as files: a data URI is decoded; an address is fetched, without credentials of the
 * caller and only from hosts that the operator allows. A picture that cannot be sent is refused by its field, before anything is
 * sent to the provider.
 */

import { sniffType } from '../../../../../lib/files/sniff-type.ts'
import { ExchangeError } from '../../../../../lib/outbound/exchange.ts'
import { BlockedAddressError } from '../../../../../lib/outbound/network.ts'
import type { ValidationFailure } from '../../../../domain/models/router-error.ts'
import type { SafeFetch } from '../../outbound/safe-fetch.ts'
import type { MediaRule } from '../rules/rule-types.ts'

export const IMAGE_MAX_BYTES = 25 * 1024 * 1024
export const REQUEST_MAX_BYTES = 64 * 1024 * 1024
const FETCH_TIME_MS = 30_000
const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/webp']
const EXTENSIONS: Readonly<Record<string, string>> = { 'image/png': 'png', 'image/jpeg': 'jpg', 'image/webp': 'webp' }
const DATA_URI = /^data:([a-z]+\/[a-z0-9.+-]+)?(?:;[a-z0-9-]+=[^;,]*)*;base64,/i

interface Media {
  readonly contentType: string
  readonly fileName: string
  readonly bytes: Buffer
}

/** The bytes behind a signed address of this service; null when it is not one. */
export type ReadHostedMedia = (
  url: URL,
  options: { readonly maxBytes: number; readonly signal: AbortSignal },
) => Promise<Buffer | null>

export interface MediaDeps {
  readonly fetch: SafeFetch
  /** Besides our own storage. A leading dot admits everything below. */
  readonly allowedHosts: readonly string[]
  readonly readHosted: ReadHostedMedia | null
}

/** A field that cannot be sent on. `failure` says which and why, in the words of a 422; null: the message says it all. */
export class FieldRefusal extends Error {
  readonly failure: ValidationFailure | null
  constructor(message: string, failure: ValidationFailure | null) {
    super(message)
    this.name = 'FieldRefusal'
    this.failure = failure
  }
}

interface MediaField {
  readonly rule: MediaRule
  readonly loc: readonly (string | number)[]
  readonly text: string
  /** How much of the bound of the whole request is left. */
  readonly roomBytes: number
}

export async function resolveMedia(field: MediaField, deps: MediaDeps, signal: AbortSignal): Promise<Media> {
  const maxBytes = Math.min(field.rule.max_bytes ?? IMAGE_MAX_BYTES, IMAGE_MAX_BYTES, field.roomBytes)
  const inline = DATA_URI.exec(field.text)
  const bytes =
    inline === null ? await readAddress(field, deps, { maxBytes, signal }) : decode(field, inline[0], maxBytes)
  const contentType = sniffType(bytes)
  const allowed = field.rule.types ?? IMAGE_TYPES
  if (contentType === null || !allowed.includes(contentType)) {
    throw refuse(
      field,
      'unsupported_image_format',
      `is ${contentType ?? 'of no known type'}; give one of ${allowed.join(', ')}`,
    )
  }
  return { contentType, fileName: `${field.loc.slice(1).join('-')}.${EXTENSIONS[contentType] ?? 'bin'}`, bytes }
}

function decode(field: MediaField, head: string, maxBytes: number): Buffer {
  const text = field.text.slice(head.length)
  if (text.length * 0.75 > maxBytes + 2) throw tooLarge(field, maxBytes)
  if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(text)) throw refuse(field, 'image_load_error', 'is no base64')
  return Buffer.from(text, 'base64')
}

interface ReadOptions {
  readonly maxBytes: number
  readonly signal: AbortSignal
}

async function readAddress(field: MediaField, deps: MediaDeps, { maxBytes, signal }: ReadOptions): Promise<Buffer> {
  const url = URL.parse(field.text)
  if (url === null) throw refuse(field, 'value_error', 'must be an https address or a data:image/…;base64, text')
  const own = await deps.readHosted?.(url, { maxBytes, signal })
  if (own !== undefined && own !== null) return own
  try {
    const limits = { signal, headTimeMs: FETCH_TIME_MS, bodyTimeMs: FETCH_TIME_MS, maxBytes }
    const answer = await deps.fetch(field.text, { ...limits, allowedHosts: deps.allowedHosts })
    if (answer.status === 200 && Buffer.isBuffer(answer.body)) return answer.body
    throw refuse(field, 'file_download_error', `could not be read from ${url.host}: it answered ${answer.status}`)
  } catch (error) {
    throw toRefusal(error, field, { url, maxBytes })
  }
}

function toRefusal(error: unknown, field: MediaField, { url, maxBytes }: { url: URL; maxBytes: number }): unknown {
  if (error instanceof BlockedAddressError) return refuse(field, 'file_download_error', `is not read: ${error.message}`)
  if (!(error instanceof ExchangeError) || error.fault === 'aborted') return error
  if (error.fault === 'too_large') return tooLarge(field, maxBytes)
  return refuse(field, 'file_download_error', `could not be read from ${url.host}: ${error.message}`)
}

function tooLarge(field: MediaField, maxBytes: number): FieldRefusal {
  return refuse(field, 'file_too_large', `is larger than ${maxBytes} bytes`, { max_size_bytes: maxBytes })
}

function refuse(field: MediaField, type: string, problem: string, ctx?: ValidationFailure['ctx']): FieldRefusal {
  const name = field.loc.slice(1).join('.')
  const msg = `the image in ${name} ${problem}`
  return new FieldRefusal(msg, { loc: field.loc, msg, type, ...(ctx && { ctx }) })
}
