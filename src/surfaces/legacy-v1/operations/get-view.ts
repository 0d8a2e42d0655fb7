/**
 * A file by its name: an address that needs no credential where bytes live elsewhere, the bytes themselves where they live
 * here. Previews and single channels are made on the way and always answered with bytes.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Asset } from '../../../domain/assets/asset.ts'
import type { FileLocation } from '../../../domain/assets/named-files.ts'
import type { Picture } from '../../../domain/assets/pictures.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { placeOf } from '../../kit/guard-hooks.ts'
import { readRange } from '../../kit/range.ts'
import { collectBytes } from '../collect-bytes.ts'
import { type Api, isApiPath, type OperationDeps, queryOf } from '../operation.ts'
import { type PictureWish, readPictureWish } from '../picture-wish.ts'
import { leavesFolder, readAnnotated, readFolder, toBaseName, toSubfolder } from '../shelf-names.ts'
import { toFileHeaders, toPictureHeaders } from '../view-headers.ts'

const LINK_LIFETIME_MS = 60 * 60 * 1000
const MAX_PICTURE_BYTES = 64 * 1024 * 1024
const HASH_NAME = /^blake3:([0-9a-f]{64})$/i

export function getView(api: Api, deps: OperationDeps): void {
  const { assets, pictures, content, freshFiles, clock } = deps

  async function find(accountId: string, query: URLSearchParams): Promise<{ asset: Asset; name: string }> {
    const hash = HASH_NAME.exec(query.get('filename') ?? '')?.[1]
    const place = hash === undefined ? readPlace(query) : null
    const look = () =>
      place === null ? assets.findByHash(accountId, (hash as string).toLowerCase()) : assets.find(accountId, place)
    let asset = await look()
    // A run has told of the file a moment ago, and it is being stored.
    while (asset === null && place !== null && (await freshFiles.waitFor({ accountId, ...place }))) asset = await look()
    if (asset === null) throw new ServiceError('not_found', 'there is no file of this name')
    return { asset, name: place?.name ?? toBaseName(asset.filePath ?? asset.id) }
  }

  async function makePicture(asset: Asset, wish: PictureWish): Promise<Picture> {
    const bytes = await collectBytes(await assets.open(asset), MAX_PICTURE_BYTES)
    if (wish.kind === 'channel') return pictures.channel(bytes, wish.channel)
    return pictures.preview(bytes, wish)
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
        `the range lies outside of the ${asset.sizeBytes} bytes of this file`,
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
    const { origin, mountPrefix } = placeOf(request)
    return reply
      .code(302)
      .header('cache-control', 'no-store')
      .header('location', origin + mountPrefix + location)
      .send()
  }

  api.both('GET', '/view', async (request, reply) => {
    const accountId = deps.accountOf(request)
    const query = queryOf(request)
    const wish = readPictureWish(query)
    const { asset, name } = await find(accountId, query)
    if (wish !== null) {
      const picture = await makePicture(asset, wish)
      return reply.headers(toPictureHeaders(picture, name)).send(picture.bytes)
    }
    const isBytes = content.sign === null || (content.servesBytes && !isApiPath(request))
    if (isBytes || content.sign === null) return sendBytes(request, reply, asset, name)
    const expiresAt = new Date(clock.now().getTime() + LINK_LIFETIME_MS)
    return redirect(request, reply, content.sign({ accountId, assetId: asset.id, expiresAt }))
  })
}

/** In ComfyUI's order: no name is a miss, a bad one a mistake, and a folder outside is forbidden. */
function readPlace(query: URLSearchParams): FileLocation {
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
