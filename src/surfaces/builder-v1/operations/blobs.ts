/** Uploaded packs and models. Their bytes come and go by signed addresses, which are all the right that is needed. */
import type { FastifyInstance } from 'fastify'
import type { BlobKind } from '../../../domain/environments/blob.ts'
import { BLOB_LINK_PATH } from '../../../domain/environments/blob-links.ts'
import { BuildError } from '../../../domain/environments/build-error.ts'
import { sendContent } from '../../kit/content/send-content.ts'
import { PUBLIC_PAGE } from '../../kit/guards/routes.ts'
import { idOf, rawQueryOf, readParameters, sendJson, untilGone } from '../../kit/request.ts'
import { toBlobRow } from '../build-view.ts'
import { BUILDER_PATH, type BuilderDeps, READ, readBody, WRITE } from '../builder-operation.ts'

const BLOBS = `${BUILDER_PATH}/blobs`

interface BlobBody {
  readonly kind: BlobKind
  readonly filename: string
  readonly sha256: string
  readonly sizeBytes: number
}

export function announceBlob(app: FastifyInstance, deps: BuilderDeps): void {
  app.post(BLOBS, WRITE, async (request, reply) => {
    const body = await readBody<BlobBody>(request, 'BlobRequest', deps)
    const { blob, upload } = await deps.parts.builds.blobs.announce(deps.callerOf(request), body)
    return sendJson(reply, upload === null ? 200 : 201, {
      ...{ blobId: blob.id, deduplicated: upload === null },
      uploadUrl: upload === null ? null : deps.baseUrlOf(request) + upload.path,
      expiresAt: upload?.expiresAt.toISOString() ?? null,
    })
  })
}

export function listBlobs(app: FastifyInstance, deps: BuilderDeps): void {
  app.get(BLOBS, READ, async (request, reply) => {
    const kind = readParameters(request.raw.url ?? '', ['kind']).get('kind') ?? null
    if (kind !== null && kind !== 'model' && kind !== 'node_zip')
      throw new BuildError('invalid_request', 'kind must be model or node_zip')
    const blobs = await deps.parts.builds.blobs.list(deps.callerOf(request), kind)
    return sendJson(reply, 200, { blobs: blobs.map(toBlobRow) })
  })
}

export function putBlob(app: FastifyInstance, { parts }: BuilderDeps): void {
  app.put(`${BLOB_LINK_PATH}/:id`, PUBLIC_PAGE, async (request, reply) => {
    const sent = { source: request.raw, signal: untilGone(request, reply) }
    await parts.builds.blobs.receive(idOf(request), rawQueryOf(request.raw.url ?? ''), sent)
    return reply.code(200).send()
  })
}

export function readBlob(app: FastifyInstance, { parts }: BuilderDeps): void {
  app.get(`${BLOB_LINK_PATH}/:id`, PUBLIC_PAGE, async (request, reply) => {
    const { blob, hash } = await parts.builds.blobs.open(idOf(request), rawQueryOf(request.raw.url ?? ''))
    const { id, sizeBytes, filename: filePath } = blob
    const asset = { id, hash, sizeBytes, contentType: 'application/octet-stream', filePath }
    return sendContent(request, reply, {
      asset,
      open: (range) => parts.partner.blobs.open(hash, range),
      signDirect: null,
    })
  })
}
