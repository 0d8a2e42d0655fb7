/** Files that nodes hand to a provider: an address to send them to, and the sending itself. */
import type { FastifyInstance } from 'fastify'
import { isJsonObject } from '../../../../lib/json/lossless-json.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { readJsonBody } from '../../kit/bodies/json-body.ts'
import { serviceAddressOf } from '../../kit/guards/guard-hooks.ts'
import { needs, PUBLIC_PAGE } from '../../kit/guards/rights.ts'
import { sendJson } from '../../kit/send-json.ts'
import { type NodeDeps, STORAGE_PATH } from '../node-operation.ts'

const MAX_JSON_BYTES = 65_536

interface UploadRequest {
  readonly file_name: string
  readonly content_type?: string | null
}

export function beginUpload(app: FastifyInstance, { partner, spec, callerOf }: NodeDeps): void {
  app.post(STORAGE_PATH, needs('assets:write'), async (request, reply) => {
    const { accountId } = callerOf(request)
    const body = await readJsonBody(request, { maxBytes: MAX_JSON_BYTES })
    if (!isJsonObject(body)) throw new ServiceError('invalid_request', 'the body must be a JSON object')
    const problem = spec.check('UploadRequest', body, 'body')
    if (problem !== null) throw new ServiceError('invalid_field', problem.replace(/^body\./, ''))
    const { file_name: fileName, content_type: contentType = null } = body as unknown as UploadRequest
    const place = partner.uploads.begin({ accountId, fileName, contentType })
    const { origin, mountPrefix } = serviceAddressOf(request)
    return sendJson(reply, 200, {
      upload_url: `${origin}${mountPrefix}${STORAGE_PATH}/${place.token}`,
      download_url: `${origin}${mountPrefix}${place.contentPath}`,
      expires_at: place.expiresAt.toISOString(),
      existing_file: false,
    })
  })
}

/** The address is the authorisation: nodes send no key along. */
export function receiveUpload(app: FastifyInstance, { partner }: NodeDeps): void {
  // A token is longer than what the framework takes for a parameter.
  app.put(`${STORAGE_PATH}/*`, PUBLIC_PAGE, async (request, reply) => {
    const { '*': token } = request.params as { readonly '*': string }
    const gone = new AbortController()
    request.raw.once('close', () => {
      if (!request.raw.complete) gone.abort()
    })
    await partner.uploads.receive(token, request.raw, gone.signal)
    return reply.code(200).send()
  })
}
