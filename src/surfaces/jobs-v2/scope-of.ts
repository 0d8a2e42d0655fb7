/** The scope that a request needs, known from its route alone: nothing has been looked up when it is checked. */
import type { FastifyRequest } from 'fastify'
import type { Scope } from '../../domain/accounts/caller.ts'
import { API_PATH } from './links.ts'

/** null: every caller may, as with the document that describes the API. */
export function scopeOf(request: FastifyRequest): Scope | null {
  const route = request.routeOptions.url ?? ''
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  if (route.includes(`${API_PATH}/assets`)) return isRead ? 'assets:read' : 'assets:write'
  if (route.includes(`${API_PATH}/jobs`)) return isRead ? 'jobs:read' : 'jobs:write'
  return null
}
