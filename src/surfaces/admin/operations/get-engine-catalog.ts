import type { FastifyInstance } from 'fastify'
import type { Fleet } from '../../../domain/engine/fleet/fleet.ts'
import { ADMIN_PATH, send } from '../operation.ts'

/** Per class and per file of weights, the engines that have it. */
export function getEngineCatalog(
  app: FastifyInstance,
  { fleet }: { readonly fleet: Pick<Fleet, 'availability'> },
): void {
  app.get(`${ADMIN_PATH}/engine-catalog`, (_request, reply) => {
    const { classes, weights } = fleet.availability()
    return send(reply, 200, { node_classes: Object.fromEntries(classes), weights: Object.fromEntries(weights) })
  })
}
