/** How an endpoint is used, for its owner, as JSON or as a table. */
import type { FastifyInstance } from 'fastify'
import { type ReportEndpointUsage, USAGE_CALLERS, USAGE_GROUPS } from '../../../domain/endpoints/endpoint-usage.ts'
import type { Reach } from '../../../domain/endpoints/reach.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { needs } from '../../kit/guards/routes.ts'
import { readParameters, sendTable } from '../../kit/request.ts'
import type { ContextOf } from '../jobs-operation.ts'
import { toUsageCsv, toUsageView } from '../views/endpoint-limits.ts'
import { ENDPOINTS_PATH } from '../views/endpoint-view.ts'

interface EndpointUsageDeps {
  readonly contextOf: ContextOf
  readonly endpoints: Pick<Reach, 'find'>
  readonly reportUsage: ReportEndpointUsage
}

export function getEndpointUsage(app: FastifyInstance, { contextOf, endpoints, reportUsage }: EndpointUsageDeps): void {
  app.get(`${ENDPOINTS_PATH}/:name/usage`, needs('endpoints:read'), async (request, reply) => {
    const context = contextOf(request)
    const parameters = readParameters(request.raw.url ?? '', ['from', 'to', 'tz', 'by', 'of'])
    const asked = parameters.get('by') ?? 'day'
    const by = USAGE_GROUPS.find((group) => group === asked)
    if (by === undefined) throw new ServiceError('invalid_request', `by must be one of ${USAGE_GROUPS.join(', ')}`)
    const whose = parameters.get('of') ?? 'own'
    const of = USAGE_CALLERS.find((each) => each === whose)
    if (of === undefined) throw new ServiceError('invalid_request', `of must be one of ${USAGE_CALLERS.join(', ')}`)
    const endpoint = await endpoints.find(context, (request.params as { readonly name: string }).name)
    const text = (name: string) => parameters.get(name) ?? null
    const period = { from: text('from'), to: text('to'), timeZone: text('tz') }
    const usage = await reportUsage(endpoint, { ...period, by, of, pool: context.pool })
    return sendTable(request, reply, { json: () => toUsageView(endpoint, usage), csv: () => toUsageCsv(usage) })
  })
}
