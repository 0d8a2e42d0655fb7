/** The contract itself, with the address at which this caller reached us. */
import type { FastifyInstance } from 'fastify'
import { serviceAddressOf } from '../../kit/guards/guard-hooks.ts'
import { ADMIN_PATH } from '../operation.ts'

export function getOpenapi(app: FastifyInstance, { specFor }: { readonly specFor: (baseUrl: string) => string }): void {
  app.get(`${ADMIN_PATH}/openapi.json`, (request, reply) =>
    reply.header('content-type', 'application/json').send(Buffer.from(specFor(serviceAddressOf(request).origin))),
  )
}
