/** What can be asked of one batch. One that this caller cannot reach looks exactly like one that does not exist. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { OpenContent } from '../../../domain/assets/asset-content.ts'
import type { Batches } from '../../../domain/jobs/batches/batches.ts'
import { needs } from '../../kit/guards/rights.ts'
import { sendJobsArchive } from '../../kit/jobs/outputs-archive.ts'
import { sendJson } from '../../kit/send-json.ts'
import type { ContextOf } from '../jobs-operation.ts'
import { type BatchLinks, toBatchView } from '../views/batch-view.ts'
import { API_PATH } from '../views/links.ts'

interface BatchesByIdDeps {
  readonly contextOf: ContextOf
  readonly batches: Batches
  readonly openContent: OpenContent
  readonly linkStyle: BatchLinks['style']
}

const BATCH_ROUTE = `${API_PATH}/batches/:id`

function getBatch(app: FastifyInstance, { contextOf, batches, linkStyle }: BatchesByIdDeps): void {
  app.get(BATCH_ROUTE, needs('jobs:read'), async (request, reply) => {
    const context = contextOf(request)
    const batch = await batches.find(context, idOf(request))
    return sendJson(reply, 200, toBatchView(batch, { base: context, style: linkStyle }))
  })
}

/** Whatever body comes is ignored. */
function cancelBatch(app: FastifyInstance, { contextOf, batches, linkStyle }: BatchesByIdDeps): void {
  app.post(`${BATCH_ROUTE}/cancel`, needs('jobs:write'), async (request, reply) => {
    const context = contextOf(request)
    const batch = await batches.cancel(context, idOf(request))
    return sendJson(reply, 200, toBatchView(batch, { base: context, style: linkStyle }))
  })
}

function getBatchOutputs(app: FastifyInstance, { contextOf, batches, openContent }: BatchesByIdDeps): void {
  app.get(`${BATCH_ROUTE}/outputs.zip`, needs('jobs:read'), async (request, reply) => {
    const context = contextOf(request)
    const id = idOf(request)
    const jobs = await batches.jobs(context, id)
    return sendJobsArchive(reply, { jobs, name: `batch-${id}` }, openContent)
  })
}

export const BATCHES_BY_ID = [getBatch, cancelBatch, getBatchOutputs]

function idOf(request: FastifyRequest): string {
  return (request.params as { id: string }).id
}
