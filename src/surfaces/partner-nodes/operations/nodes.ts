import type { FastifyInstance } from 'fastify'
import { ServiceError } from '../../../domain/errors.ts'
import { wrongMethod } from '../../kit/contracts/path-methods.ts'
import { serviceAddressOf } from '../../kit/guards/guard-hooks.ts'
import { needs } from '../../kit/guards/rights.ts'
import { pathOf } from '../../kit/request-url.ts'
import { sendJson } from '../../kit/send-json.ts'
import { type NodeDeps, PROXY_PATH, splitPath } from '../node-operation.ts'
import { createServeNode } from '../serve-node.ts'

/** A path is looked up before anything of the body is read, and the caller is known before that. */
export function callPartner(app: FastifyInstance, { partner, mountPrefix, callerOf }: NodeDeps): void {
  const serveNode = createServeNode(partner)
  app.all(`${PROXY_PATH}/*`, needs('models:run'), async (request, reply) => {
    const caller = callerOf(request)
    const { provider, rest } = splitPath(pathOf(request.raw.url ?? '').slice(mountPrefix.length))
    const routes = partner.nodes.routes()
    const found = routes.find(provider, request.method, rest)
    if (found !== null) return serveNode(request, reply, { caller, found })
    const methods = routes.methodsOf(provider, rest)
    if (methods.length > 0) reply.header('allow', methods.join(', '))
    if (methods.length > 0) throw wrongMethod(request.method, methods)
    throw new ServiceError('not_found', 'no partner node is known to call this path, so nothing was passed on')
  })
}

/** The contract, with the address at which this caller reached us. */
export function getPartnerOpenapi(app: FastifyInstance, { spec }: NodeDeps): void {
  app.get(`${PROXY_PATH}/openapi.json`, needs('public'), (request, reply) => {
    const { origin, mountPrefix } = serviceAddressOf(request)
    return sendJson(reply, 200, spec.textFor(origin + mountPrefix))
  })
}
