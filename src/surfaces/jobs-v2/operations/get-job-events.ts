/** Follows a job as server-sent events. Ordinarily opened in front of the framework (hot-path.ts); this is the same stream. */
import type { FastifyInstance } from 'fastify'
import type { Gate } from '../../kit/guards/gate.ts'
import type { EventHub } from '../events/event-hub.ts'
import { jobIdOf } from '../job-id.ts'
import type { OperationKit } from '../jobs-operation.ts'
import { API_PATH } from '../views/links.ts'

export interface GetJobEventsDeps {
  readonly kit: OperationKit
  readonly gate: Pick<Gate, 'answerHeaders' | 'authenticate'>
  readonly hub: Pick<EventHub, 'open'>
}

export const EVENTS_ROUTE = `${API_PATH}/jobs/:id/events`

export function getJobEvents(app: FastifyInstance, { kit, gate, hub }: GetJobEventsDeps): void {
  app.get(EVENTS_ROUTE, { exposeHeadRoute: false }, async (request, reply) => {
    const { requestId, ...context } = kit.contextOf(request)
    const jobId = jobIdOf(request)
    const headers = gate.answerHeaders(request.headers.origin, requestId)
    const caller = await gate.authenticate(request.raw, 'bearer')
    await hub.open(reply.raw, { caller, reach: context, jobId, base: context, headers })
    // Only now: a refusal above must still be answered by the framework.
    return reply.hijack()
  })
}
