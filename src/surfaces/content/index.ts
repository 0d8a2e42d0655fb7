/**
 * The bytes behind a signed address, for GET and HEAD: the address itself is the authorisation. The bytes are uploads of
 * strangers, so they are sandboxed, never sniffed, and downloaded rather than shown where a browser could run them.
 */
import type { FastifyInstance } from 'fastify'
import type { Clock } from '../../../lib/clock.ts'
import type { AssetContent, OpenContent } from '../../domain/assets/asset-content.ts'
import type { BlobStore } from '../../domain/assets/blob-store.ts'
import { CONTENT_PATH, type VerifyContentUrl } from '../../domain/assets/signed-url.ts'
import { ServiceError } from '../../domain/errors.ts'
import { CHECKED_PATH, type CheckLinks } from '../../domain/moderation/check-links.ts'
import { DOWNLOAD, sendContent } from '../kit/content/send-content.ts'
import { ANY_ORIGIN } from '../kit/guards/cors.ts'
import type { Gate } from '../kit/guards/gate.ts'
import { PUBLIC_PAGE, sendError } from '../kit/guards/routes.ts'
import { rawQueryOf } from '../kit/request.ts'
import type { AnswerError, Surface } from '../kit/surface.ts'

interface ContentSurfaceOptions {
  readonly gate: Pick<Gate, 'mountPrefix'>
  readonly answerError: AnswerError
  readonly verify: VerifyContentUrl
  readonly openContent: OpenContent
  /** Of the addresses that hooks of moderation get. */
  readonly checked: { readonly links: Pick<CheckLinks, 'verify'>; readonly blobs: Pick<BlobStore, 'open' | 'stat'> }
  readonly clock: Clock
}

const METHODS = ['GET', 'HEAD']

/** Not part of the signature: who may see the bytes may also save them. */
function withoutDownload(query: string): string {
  return query.endsWith(`&${DOWNLOAD}`) ? query.slice(0, -DOWNLOAD.length - 1) : query
}

export function createContentSurface(options: ContentSurfaceOptions): Surface {
  const { gate, answerError, verify, openContent, checked, clock } = options

  function register(app: FastifyInstance): void {
    app.setErrorHandler((error, request, reply) => sendError(reply, answerError(error, request.id)))
    app.route({
      method: METHODS,
      url: `${gate.mountPrefix}${CONTENT_PATH}/:id`,
      // The address is the authorisation: a page of another site may show what its user was given.
      ...PUBLIC_PAGE,
      handler: async (request, reply) => {
        const { id } = request.params as { id: string }
        const grant = verify(id, withoutDownload(rawQueryOf(request.raw.url ?? '')))
        const content = await openContent(grant.accountId, grant.assetId)
        reply.header(ANY_ORIGIN[0], ANY_ORIGIN[1])
        return sendContent(request, reply, content, { keepSeconds: secondsUntil(grant.expiresAt) })
      },
    })
    app.route({
      method: METHODS,
      url: `${gate.mountPrefix}${CHECKED_PATH}`,
      ...PUBLIC_PAGE,
      handler: async (request, reply) => {
        const { hash, sizeBytes, contentType } = checked.links.verify(rawQueryOf(request.raw.url ?? ''))
        const found = await checked.blobs.stat(hash)
        if (found?.sizeBytes !== sizeBytes) throw new ServiceError('output_unavailable', 'these bytes are gone')
        const open: AssetContent['open'] = (range) => checked.blobs.open(hash, range)
        const asset = { id: hash, hash, sizeBytes, contentType, filePath: null }
        return sendContent(request, reply, { asset, open, signDirect: null })
      },
    })
  }
  /** Whoever has the address may read the bytes until then, so a copy that is kept as long gives nothing away. */
  function secondsUntil(expiresAt: Date): number {
    return Math.max(0, Math.floor((expiresAt.getTime() - clock.now().getTime()) / 1000))
  }
  const prefix = `${gate.mountPrefix}${CONTENT_PATH}/`
  return {
    name: 'content',
    register,
    allowedMethods: (path) => (path.startsWith(prefix) ? METHODS : []),
  }
}
