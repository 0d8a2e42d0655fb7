/**
 * A file by its name: a redirect to a signed address that needs no credential, or the bytes themselves where there are no
 * signed addresses. Previews and single channels are made on the way and always answered with bytes.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Asset } from '../../../domain/assets/asset.ts'
import { mustRead } from '../../../domain/assets/asset-content.ts'
import type { FileLocation } from '../../../domain/assets/named-files.ts'
import type { Picture, PreviewFormat } from '../../../domain/assets/pictures.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { readRange } from '../../kit/content/range.ts'
import { serviceAddressOf } from '../../kit/guards/guard-hooks.ts'
import { leavesFolder, readAnnotated, readFolder, toBaseName, toSubfolder } from '../files/file-names.ts'
import { collectBytes, MAX_PICTURE_BYTES } from '../files/picture-bytes.ts'
import { toFileHeaders, toPictureHeaders } from '../files/view-headers.ts'
import { type Api, isApiPath, type OperationDeps, queryOf } from '../legacy-operation.ts'

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
export function readLocation(query: URLSearchParams): FileLocation {
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
