/** Puts a call into the queue: 201 means that it is durably recorded. */
import type { FastifyInstance } from 'fastify'
import type { Access } from '../../../domain/models/access/model-access.ts'
import type { ModelQueue } from '../../../domain/models/queue/model-queue.ts'
import { fingerprintOf, readCallInput, readKey } from '../call-input.ts'
import { type OperationKit, sendJson } from '../operation.ts'
import { MODEL_ROUTE, type ModelParams } from '../paths.ts'
import { toRequestUrls } from '../request-view.ts'
import { openWithQuery } from '../run-query.ts'

export interface SubmitRequestDeps {
  readonly kit: OperationKit
  readonly access: Pick<Access, 'open'>
  readonly queue: Pick<ModelQueue, 'submit'>
  readonly maxBodyBytes: number
}

export function submitRequest(app: FastifyInstance, { kit, access, queue, maxBodyBytes }: SubmitRequestDeps): void {
  app.post<{ Params: ModelParams }>(`${MODEL_ROUTE}/requests`, async (request, reply) => {
    const { caller, baseUrl } = kit.contextOf(request)
    const opened = openWithQuery(access.open(caller, request.params.provider, request.params.model), request.raw.url)
    const key = readKey(request.raw)
    const { body, input } = await readCallInput(request.raw, maxBodyBytes)
    const fingerprint = key === null ? '' : fingerprintOf(request.raw, body)
    const { accountId } = caller
    const { requestId, position, isReplay } = await queue.submit({
      opened,
      accountId,
      key,
      fingerprint,
      body,
      input,
      baseUrl,
    })
    if (isReplay) reply.header('idempotent-replayed', 'true')
    return sendJson(reply, 201, {
      request_id: requestId,
      status: 'IN_QUEUE',
      queue_position: position,
      ...toRequestUrls({ baseUrl, modelId: opened.model.id, requestId }),
    })
  })
}
