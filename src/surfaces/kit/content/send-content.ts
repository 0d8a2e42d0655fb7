/**
 * Sends the bytes of an asset, whole or one range of them, for GET and HEAD. Whatever it is, it is somebody's upload on our
 * origin: never sniffed, never run, and what a browser would run is only ever downloaded. A client that leaves ends the reading
 * of the file at once. Where the storage serves bytes itself, clients are sent there for what nothing can run.
 */

import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { extensionFromType, isActiveType, isInertType, isMediaType, toBareType } from '../../../../lib/files/mime.ts'
import type { Asset } from '../../../domain/assets/asset.ts'
import type { AssetContent } from '../../../domain/assets/asset-content.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { lenientQueryOf } from '../request.ts'

const UNKNOWN_TYPE = 'application/octet-stream'

/** What is added to the address of content to have it saved rather than shown. */
export const DOWNLOAD = 'download=1'

/** Whether the bytes shall be saved, whatever a browser could show of them. */
export function asksToDownload(url: string): boolean {
  return lenientQueryOf(url).get('download') === '1'
}

/** What of bytes is told with them. */
type SentAsset = Pick<Asset, 'id' | 'hash' | 'sizeBytes' | 'contentType' | 'filePath'>

interface SentContent extends Omit<AssetContent, 'asset'> {
  readonly asset: SentAsset
}

interface KeepOptions {
  /** How long a browser may keep the bytes without asking again; left out: not at all. */
  readonly keepSeconds?: number
}

export async function sendContent(
  request: FastifyRequest,
  reply: FastifyReply,
  content: SentContent,
  { keepSeconds = 0 }: KeepOptions = {},
) {
  const { asset, open } = content
  const etag = quoteDigest(asset.hash)
  const isDownload = asksToDownload(request.raw.url ?? '')
  if (matchesEtag(request.headers['if-none-match'], etag)) {
    return reply
      .code(304)
      .headers(toContentHeaders(asset, { etag, isDownload, keepSeconds }))
      .removeHeader('content-type')
      .send()
  }
  const range = readRange(usableRange(request, etag), asset.sizeBytes)
  if (range.kind === 'unsatisfiable') {
    reply.header('content-range', `bytes */${asset.sizeBytes}`)
    throw new ServiceError(
      'range_not_satisfiable',
      `the range is outside of the ${asset.sizeBytes} bytes of this asset`,
    )
  }
  const location = await findDirect(request, content)
  if (location !== null) {
    // The address is valid for minutes only, and needs no further authorisation.
    return reply.code(302).headers({ location, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' }).send()
  }
  const span = range.kind === 'part' ? range.span : undefined
  // Before any header is set: a refusal must not carry the headers of the content.
  const body = request.method === 'HEAD' ? undefined : await open(span)
  reply.headers(toContentHeaders(asset, { etag, isDownload, keepSeconds }))
  const length = span === undefined ? asset.sizeBytes : span.end - span.start + 1
  reply.code(span === undefined ? 200 : 206).header('content-length', String(length))
  if (span !== undefined) reply.header('content-range', `bytes ${span.start}-${span.end}/${asset.sizeBytes}`)
  return reply.send(body)
}

/**
 * The storage sends type and disposition as they are signed, but not the headers that keep a browser from running what it gets,
 * nor those that let a page of another origin read it: what needs them is sent from here.
 */
async function findDirect(request: FastifyRequest, { asset, signDirect }: SentContent): Promise<string | null> {
  const isReadByPage = request.headers['sec-fetch-mode'] === 'cors' || request.headers.origin !== undefined
  if (signDirect === null || isReadByPage || !isInertType(asset.contentType)) return null
  const method = request.method === 'HEAD' ? 'HEAD' : 'GET'
  const disposition = toDisposition(asset, asksToDownload(request.raw.url ?? ''))
  return signDirect({ method, contentType: toBareType(asset.contentType), disposition })
}

/** A range is meant for the content that the client knows: `If-Range` with anything else asks for the whole. */
function usableRange(request: FastifyRequest, etag: string): string | undefined {
  const condition = request.headers['if-range']
  return condition === undefined || condition === etag ? request.headers.range : undefined
}

interface Sending extends Required<KeepOptions> {
  readonly etag: string
  readonly isDownload: boolean
}

function toContentHeaders(
  asset: SentAsset,
  { etag, isDownload, keepSeconds }: Sending,
): Readonly<Record<string, string>> {
  return {
    // The type of an output is whatever its engine said.
    'content-type': isMediaType(asset.contentType) ? asset.contentType : UNKNOWN_TYPE,
    'content-disposition': toDisposition(asset, isDownload),
    'accept-ranges': 'bytes',
    etag,
    // The bytes of an id never change, but the record may go: without a time to keep it, ask each time and get a 304.
    'cache-control': keepSeconds === 0 ? 'private, no-cache' : `private, max-age=${keepSeconds}, immutable`,
    'x-content-type-options': 'nosniff',
    'content-security-policy': "sandbox; default-src 'none'",
  }
}

function toDisposition(asset: SentAsset, isDownload: boolean): string {
  const kind = isDownload || isActiveType(asset.contentType) ? 'attachment' : 'inline'
  const name = asset.filePath?.split('/').at(-1) ?? `${asset.id}.${extensionFromType(asset.contentType) ?? 'bin'}`
  const ascii = name.replace(/[^\x20-\x7e]|["\\%]/g, '_')
  return `${kind}; ${toFileNameParameters(name, ascii, ascii === name)}`
}

// File names in a `Content-Disposition` header (RFC 6266).

/**
 * The `filename` parameter, and `filename*` for a name that it cannot spell. `ascii` is the name as it can stand between quotes;
 * `isExact` says that it is the whole truth.
 */
export function toFileNameParameters(name: string, ascii: string, isExact: boolean): string {
  const plain = `filename="${ascii}"`
  return isExact ? plain : `${plain}; filename*=UTF-8''${encodeExtended(name)}`
}

/** RFC 5987: encodeURIComponent leaves a few characters that its grammar does not allow. */
function encodeExtended(name: string): string {
  const escaped = encodeURIComponent(name.toWellFormed())
  return escaped.replace(/['()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
}

/** Whether a caller takes an answer in this encoding (RFC 9110, 12.5.3); a weight of zero means that it does not. */
export function acceptsEncoding(name: 'br' | 'gzip', header: string | string[] | undefined): boolean {
  const pattern = `(?:^|,)\\s*${name}\\s*(?:;\\s*q=(?!0(?:\\.0*)?\\s*(?:,|$))|,|$)`
  return new RegExp(pattern).test(String(header ?? ''))
}

// Strong tags, and whether a caller already has what they stand for (RFC 9110, 13.1.2: weak comparison, lists and `*`).

/** For bytes without a digest of their own. */
export function toEtag(bytes: string | Uint8Array): string {
  return quoteDigest(hash('sha256', bytes))
}

/** A digest is a tag as soon as it stands in quotes. */
export function quoteDigest(digest: string): string {
  return `"${digest}"`
}

export function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  return ifNoneMatch.split(',').some((candidate) => {
    const tag = candidate.trim()
    return tag === '*' || tag.replace(/^W\//, '') === etag
  })
}

/** The `Range` header for one resource of known size, as RFC 9110 section 14 has it. Pure. */
interface ByteSpan {
  readonly start: number
  /** Inclusive. */
  readonly end: number
}

type RangeAnswer =
  | { readonly kind: 'whole' }
  | { readonly kind: 'part'; readonly span: ByteSpan }
  | { readonly kind: 'unsatisfiable' }

const WHOLE: RangeAnswer = { kind: 'whole' }
const UNSATISFIABLE: RangeAnswer = { kind: 'unsatisfiable' }
const SINGLE = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i

/**
 * A header that is malformed, has another unit or several ranges is ignored, as the RFC allows: the whole content is always
 * a correct answer. Only a well-formed range that touches no byte is unsatisfiable.
 */
export function readRange(header: string | undefined, sizeBytes: number): RangeAnswer {
  const match = header === undefined ? null : SINGLE.exec(header)
  if (match === null) return WHOLE
  const [, first = '', last = ''] = match
  if (first === '') return last === '' ? WHOLE : readSuffix(Number(last), sizeBytes)
  const start = Number(first)
  const end = last === '' ? Number.POSITIVE_INFINITY : Number(last)
  if (end < start) return WHOLE
  return start < sizeBytes ? part(start, Math.min(end, sizeBytes - 1)) : UNSATISFIABLE
}

function readSuffix(length: number, sizeBytes: number): RangeAnswer {
  if (length === 0 || sizeBytes === 0) return UNSATISFIABLE
  return part(Math.max(0, sizeBytes - length), sizeBytes - 1)
}

function part(start: number, end: number): RangeAnswer {
  return { kind: 'part', span: { start, end } }
}
