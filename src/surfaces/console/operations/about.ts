import type { FastifyInstance } from 'fastify'
import { serviceAddressOf } from '../../kit/guards/guard-hooks.ts'
import { needs } from '../../kit/guards/rights.ts'
import { sendJson } from '../../kit/send-json.ts'
import { CONSOLE_API, type ConsoleDeps } from '../console-operation.ts'

/** The contract, with the address at which this caller reached us. */
export function getOpenapi(app: FastifyInstance, { specFor }: ConsoleDeps): void {
  app.get(`${CONSOLE_API}/openapi.json`, needs('any_scope'), (request, reply) => {
    const { origin, mountPrefix } = serviceAddressOf(request)
    return sendJson(reply, 200, specFor(origin + mountPrefix))
  })
}
