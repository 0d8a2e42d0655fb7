/** Sends bytes, whole or one range of them, for GET and HEAD. A client that leaves ends the reading of the file at once. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { AssetContent } from '../../domain/assets/asset-content.ts'
import { ServiceError } from '../../domain/errors.ts'
import { matchesEtag, toContentHeaders, toEtag } from './content-headers.ts'
import { readRange } from './range.ts'

export async function sendContent(request: FastifyRequest, reply: FastifyReply, { asset, open }: AssetContent) {
  if (matchesEtag(request.headers['if-none-match'], toEtag(asset))) {
    return reply.code(304).headers(toContentHeaders(asset)).removeHeader('content-type').send()
  }
  const range = readRange(usableRange(request, toEtag(asset)), asset.sizeBytes)
  if (range.kind === 'unsatisfiable') {
    reply.header('content-range', `bytes */${asset.sizeBytes}`)
    throw new ServiceError(
      'range_not_satisfiable',
      `the range lies outside of the ${asset.sizeBytes} bytes of this asset`,
    )
  }
  const span = range.kind === 'part' ? range.span : undefined
  // Before any header is set: a refusal must not carry the headers of the content.
  const body = request.method === 'HEAD' ? undefined : await open(span)
  reply.headers(toContentHeaders(asset))
  const length = span === undefined ? asset.sizeBytes : span.end - span.start + 1
  reply.code(span === undefined ? 200 : 206).header('content-length', String(length))
  if (span !== undefined) reply.header('content-range', `bytes ${span.start}-${span.end}/${asset.sizeBytes}`)
  return reply.send(body)
}

/** A range is meant for the content that the client knows: `If-Range` with anything else asks for the whole. */
function usableRange(request: FastifyRequest, etag: string): string | undefined {
  const condition = request.headers['if-range']
  return condition === undefined || condition === etag ? request.headers.range : undefined
}
