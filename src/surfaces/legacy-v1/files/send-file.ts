/**
 * Answers with a file of the account, whichever route it was asked for on: a redirect to a signed address that needs no credential, or
 * the bytes themselves where there are no signed addresses. Previews and single channels are made on the way and always answered
 * with bytes.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isActiveType, isMediaType } from '../../../../lib/files/mime.ts'
import type { Asset } from '../../../domain/assets/asset.ts'
import type { Picture, PreviewFormat } from '../../../domain/assets/pictures.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { DOWNLOAD, readRange, toFileNameParameters } from '../../kit/content/send-content.ts'
import { serviceAddressOf } from '../../kit/guards/routes.ts'
import { isApiPath, type OperationDeps } from '../legacy-operation.ts'
import { collectBytes, MAX_PICTURE_BYTES } from './file-names.ts'

const LINK_LIFETIME_MS = 60 * 60 * 1000
// For so long a file has the same address, which a browser then need not load again.
const STEADY_MS = LINK_LIFETIME_MS / 4

/** What of an asset is told with its bytes. */
type StoredFile = Pick<Asset, 'id' | 'hash' | 'sizeBytes' | 'contentType' | 'createdAt'>

interface SentFile {
  readonly accountId: string
  readonly asset: StoredFile
  readonly name: string
  /** null: as it is. */
  readonly change: PictureChange | null
  /** It is to be saved, whatever a browser could show of it. */
  readonly isDownload?: boolean
}

type SendFile = (request: FastifyRequest, reply: FastifyReply, file: SentFile) => Promise<FastifyReply>

type SendDeps = Pick<OperationDeps, 'assets' | 'pictures' | 'content' | 'clock' | 'isForEditor'>

export function createSendFile({ assets, pictures, content, clock, isForEditor }: SendDeps): SendFile {
  async function makePicture(asset: StoredFile, change: PictureChange): Promise<Picture> {
    const bytes = await collectBytes(await assets.open(asset), MAX_PICTURE_BYTES)
    if (change.kind === 'channel') return pictures.channel(bytes, change.channel)
    return pictures.preview(bytes, change)
  }

  async function sendBytes(request: FastifyRequest, reply: FastifyReply, { asset, name, isDownload }: SentFile) {
    const etag = `"${asset.hash}"`
    const fetchDest = request.headers['sec-fetch-dest']
    const headers = toFileHeaders(asset, { name, etag, fetchDest, isDownload: isDownload === true })
    if (request.headers['if-none-match'] === etag) return reply.code(304).headers(headers).send()
    const range = readRange(request.headers.range, asset.sizeBytes)
    if (range.kind === 'unsatisfiable') {
      reply.header('content-range', `bytes */${asset.sizeBytes}`)
      throw new ServiceError(
        'range_not_satisfiable',
        `the range is outside of the ${asset.sizeBytes} bytes of this file`,
      )
    }
    const span = range.kind === 'part' ? range.span : undefined
    const body = request.method === 'HEAD' ? undefined : await assets.open(asset, span)
    const length = span === undefined ? asset.sizeBytes : span.end - span.start + 1
    reply
      .headers(headers)
      .code(span === undefined ? 200 : 206)
      .header('content-length', String(length))
    if (span !== undefined) reply.header('content-range', `bytes ${span.start}-${span.end}/${asset.sizeBytes}`)
    return reply.send(body)
  }

  function redirect(request: FastifyRequest, reply: FastifyReply, location: string) {
    const { origin, mountPrefix } = serviceAddressOf(request)
    return reply
      .code(302)
      .header('cache-control', 'no-store')
      .header('location', origin + mountPrefix + location)
      .send()
  }

  return async function sendFile(request, reply, file) {
    const { accountId, asset, name, change, isDownload } = file
    if (change !== null) {
      const picture = await makePicture(asset, change)
      return reply.headers(toPictureHeaders(picture, name)).send(picture.bytes)
    }
    const isBytes = content.sign === null || (content.servesBytes && (isForEditor || !isApiPath(request)))
    if (isBytes || content.sign === null) return sendBytes(request, reply, file)
    const signedAt = new Date(Math.floor(clock.now().getTime() / STEADY_MS) * STEADY_MS)
    const expiresAt = new Date(signedAt.getTime() + LINK_LIFETIME_MS)
    const location = content.sign({ accountId, assetId: asset.id, expiresAt, signedAt })
    return redirect(request, reply, isDownload === true ? `${location}&${DOWNLOAD}` : location)
  }
}

/** What a query wants done to a picture. */
type PictureChange =
  | { readonly kind: 'channel'; readonly channel: 'rgb' | 'a' }
  | { readonly kind: 'preview'; readonly format: PreviewFormat; readonly quality: number; readonly fitPixels?: number }

const DEFAULT_QUALITY = 90
const THUMBNAIL_MIN = 64
const THUMBNAIL_MAX = 1024

/** null for a query that wants the file as it is. A value that cannot be read counts as left out. */
export function readPictureChange(query: URLSearchParams): PictureChange | null {
  const channel = query.get('channel') ?? ''
  const preview = query.get('preview')
  if (preview !== null) return readPreview(preview, channel)
  if (channel === 'rgb') return { kind: 'channel', channel: 'rgb' }
  if (channel === 'a' || channel === 'alpha') return { kind: 'channel', channel: 'a' }
  const size = Number.parseInt(query.get('res') ?? '', 10)
  if (!Number.isInteger(size)) return null
  const fitPixels = Math.min(THUMBNAIL_MAX, Math.max(THUMBNAIL_MIN, size))
  return { kind: 'preview', format: 'jpeg', quality: DEFAULT_QUALITY, fitPixels }
}

/** Such as `webp;50`. A preview that must keep its alpha is never a JPEG. */
function readPreview(text: string, channel: string): PictureChange {
  const [wanted, quality] = text.split(';')
  const format = wanted === 'jpeg' && !channel.includes('a') ? 'jpeg' : 'webp'
  const number = Number.parseInt(quality ?? '', 10)
  return { kind: 'preview', format, quality: number >= 1 && number <= 100 ? number : DEFAULT_QUALITY }
}

/** Headers of files as ComfyUI sends them. A type that a browser would run is only ever downloaded. */
interface FileHeaderOptions {
  readonly name: string
  readonly etag: string
  readonly isDownload: boolean
  /** `Sec-Fetch-Dest`: what the browser wants the file for. */
  readonly fetchDest: string | string[] | undefined
}

type Headers = Readonly<Record<string, string>>

function toFileHeaders(asset: StoredFile, { name, etag, fetchDest, isDownload }: FileHeaderOptions): Headers {
  const contentType = isMediaType(asset.contentType) ? asset.contentType : 'application/octet-stream'
  const common = {
    etag,
    'last-modified': asset.createdAt.toUTCString(),
    'accept-ranges': 'bytes',
    'x-content-type-options': 'nosniff',
    'content-security-policy': "sandbox; default-src 'none'",
  }
  if (!isActiveType(contentType)) {
    return {
      ...common,
      'content-type': contentType,
      'content-disposition': isDownload ? `attachment; ${toDisposition(name)}` : toDisposition(name),
      'cache-control': 'private, no-cache',
    }
  }
  // An <img> runs nothing in an SVG; anything else might.
  const isPicture = contentType.startsWith('image/') && fetchDest === 'image' && !isDownload
  return {
    ...common,
    'content-type': isPicture ? contentType : 'application/octet-stream',
    'content-disposition': isPicture ? toDisposition(name) : `attachment; ${toDisposition(name)}`,
    vary: 'Sec-Fetch-Dest',
    'cache-control': 'no-store',
  }
}

function toPictureHeaders({ contentType }: Picture, name: string): Headers {
  return {
    'content-type': contentType,
    'content-disposition': toDisposition(name),
    'cache-control': 'private, no-cache',
  }
}

/** As ComfyUI writes it, without `inline`; a name beyond ASCII is sent in the extended form as well (RFC 5987). */
function toDisposition(name: string): string {
  const ascii = name.replace(/[^\x20-\x7e]/g, '_').replace(/["\\]/g, '\\$&')
  return toFileNameParameters(name, ascii, /^[\x20-\x7e]*$/.test(name))
}
