import type { FastifyRequest } from 'fastify'
import { isUuid } from '../../../lib/ids.ts'
import { ServiceError } from '../../domain/errors.ts'

/** The asset id of the path. What is not a UUID names no asset, so nothing else is asked. */
export function assetIdOf(request: FastifyRequest): string {
  const { id } = request.params as { id: string }
  if (isUuid(id)) return id
  throw new ServiceError('not_found', 'there is no asset with this id')
}
