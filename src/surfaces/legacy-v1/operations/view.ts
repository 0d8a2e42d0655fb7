/**
 * A file by its name: a redirect to a signed address that needs no credential, or the bytes themselves where there are no
 * signed addresses. Previews and single channels are made on the way and always answered with bytes.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isActiveType, isMediaType } from '../../../../lib/files/mime.ts'
import { readVideoFacts } from '../../../../lib/files/video-facts.ts'
import type { Asset } from '../../../domain/assets/asset.ts'
import { mustRead } from '../../../domain/assets/asset-content.ts'
import type { FileLocation } from '../../../domain/assets/named-files.ts'
import type { Picture, PreviewFormat } from '../../../domain/assets/pictures.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { readRange, toFileNameParameters } from '../../kit/content/send-content.ts'
import { serviceAddressOf } from '../../kit/guards/routes.ts'
import {
  collectBytes,
  leavesFolder,
  MAX_PICTURE_BYTES,
  readAnnotated,
  readFolder,
  toBaseName,
  toSubfolder,
} from '../files/file-names.ts'
import { type Api, isApiPath, type OperationDeps, queryOf, sendJson } from '../legacy-operation.ts'

const LINK_LIFETIME_MS = 60 * 60 * 1000
// For so long a file has the same address, which a browser then need not load again.
const STEADY_MS = LINK_LIFETIME_MS / 4
const HASH_NAME = /^blake3:([0-9a-f]{64})$/i

export function getView(api: Api, deps: OperationDeps): void {
  const { assets, pictures, content, announcedFiles, clock } = deps

  async function find(accountId: string, query: URLSearchParams): Promise<{ asset: Asset; name: string }> {
    const hash = HASH_NAME.exec(query.get('filename') ?? '')?.[1]
    const location = hash === undefined ? readLocation(query) : null
    const look = () =>
      location === null
        ? assets.findByHash(accountId, (hash as string).toLowerCase())
        : assets.find(accountId, location)
    const asset = location === null ? await look() : await announcedFiles.find({ accountId, ...location }, look)
    if (asset === null) throw new ServiceError('not_found', 'there is no file of this name')
    return { asset, name: location?.name ?? toBaseName(asset.filePath ?? asset.id) }
  }

  async function makePicture(asset: Asset, change: PictureChange): Promise<Picture> {
    const bytes = await collectBytes(await assets.open(asset), MAX_PICTURE_BYTES)
    if (change.kind === 'channel') return pictures.channel(bytes, change.channel)
    return pictures.preview(bytes, change)
  }

  async function sendBytes(request: FastifyRequest, reply: FastifyReply, asset: Asset, name: string) {
    const etag = `"${asset.hash}"`
    const headers = toFileHeaders(asset, { name, etag, fetchDest: request.headers['sec-fetch-dest'] })
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

  api.both('GET', '/view', 'asset', async (request, reply) => {
    const caller = deps.callerOf(request)
    const { accountId } = caller
    const query = queryOf(request)
    await mustRead(caller, async () => (await find(accountId, query)).asset)
    const change = readPictureChange(query)
    const { asset, name } = await find(accountId, query)
    if (change !== null) {
      const picture = await makePicture(asset, change)
      return reply.headers(toPictureHeaders(picture, name)).send(picture.bytes)
    }
    const isBytes = content.sign === null || (content.servesBytes && (deps.isForEditor || !isApiPath(request)))
    if (isBytes || content.sign === null) return sendBytes(request, reply, asset, name)
    const signedAt = new Date(Math.floor(clock.now().getTime() / STEADY_MS) * STEADY_MS)
    const expiresAt = new Date(signedAt.getTime() + LINK_LIFETIME_MS)
    return redirect(request, reply, content.sign({ accountId, assetId: asset.id, expiresAt, signedAt }))
  })
}

/** In ComfyUI's order: no name is 404, a name that leads out of its folder 400, a subfolder that does so 403. */
function readLocation(query: URLSearchParams): FileLocation {
  const given = query.get('filename') ?? ''
  if (given === '') throw new ServiceError('not_found', 'filename is missing')
  const { name, folder: annotated } = readAnnotated(given)
  if (name.startsWith('/') || name.includes('..') || name.includes('\0')) {
    throw new ServiceError('invalid_request', 'filename must not lead out of its folder')
  }
  const folder = annotated ?? readFolder(query.get('type') || 'output')
  if (folder === null) throw new ServiceError('invalid_request', 'type must be input, output or temp')
  const subfolder = query.get('subfolder') ?? ''
  if (leavesFolder(subfolder)) throw new ServiceError('forbidden', 'subfolder must not lead out of its folder')
  const base = toBaseName(name)
  if (base === '') throw new ServiceError('not_found', 'there is no file of this name')
  return { folder, name: base, subfolder: toSubfolder(subfolder) }
}

/** What a query wants done to a picture. */
type PictureChange =
  | { readonly kind: 'channel'; readonly channel: 'rgb' | 'a' }
  | { readonly kind: 'preview'; readonly format: PreviewFormat; readonly quality: number; readonly fitPixels?: number }

const DEFAULT_QUALITY = 90
const THUMBNAIL_MIN = 64
const THUMBNAIL_MAX = 1024

/** null for a query that wants the file as it is. A value that cannot be read counts as left out. */
function readPictureChange(query: URLSearchParams): PictureChange | null {
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
  /** `Sec-Fetch-Dest`: what the browser wants the file for. */
  readonly fetchDest: string | string[] | undefined
}

type Headers = Readonly<Record<string, string>>

function toFileHeaders(asset: Asset, { name, etag, fetchDest }: FileHeaderOptions): Headers {
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
      'content-disposition': toDisposition(name),
      'cache-control': 'private, no-cache',
    }
  }
  // An <img> runs nothing in an SVG; anything else might.
  const isPicture = contentType.startsWith('image/') && fetchDest === 'image'
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

// What the editor asks about a video before it shows it frame by frame.

// The tables of an hour of video.
const MAX_RANGE_BYTES = 33_554_432

/** Of MP4 and MOV; other files have none, as on a server that cannot read them. */
export function getVideoMetadata(api: Api, { assets, callerOf }: OperationDeps): void {
  api.both('GET', '/video_metadata', 'asset', async (request, reply) => {
    const caller = callerOf(request)
    const find = async () => assets.find(caller.accountId, readLocation(queryOf(request)))
    await mustRead(caller, async () => (await find()) ?? { jobId: null })
    const asset = await find()
    const facts = asset === null ? null : await readVideoFacts(readRange, asset.sizeBytes)
    if (asset === null || facts === null) throw new ServiceError('not_found', 'there is no video of this name')
    const { width, height, fps, durationSeconds: duration, frameCount: frame_count } = facts
    return sendJson(reply, { fps, duration, frame_count, width, height, size: asset.sizeBytes })

    async function readRange(start: number, length: number): Promise<Buffer> {
      if (asset === null || start >= asset.sizeBytes || length <= 0) return Buffer.alloc(0)
      const end = Math.min(start + length, asset.sizeBytes) - 1
      return collectBytes(await assets.open(asset, { start, end }), MAX_RANGE_BYTES)
    }
  })
}
