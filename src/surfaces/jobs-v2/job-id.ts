import type { FastifyRequest } from 'fastify'
import { isUuid } from '../../../lib/ids.ts'
import { ServiceError } from '../../domain/errors.ts'

/** The job id of the path. What is not a UUID names no job, so nothing else is asked. */
export function jobIdOf(request: FastifyRequest): string {
  const { id } = request.params as { id: string }
  if (isUuid(id)) return id
  throw new ServiceError('not_found', 'there is no job with this id')
}
