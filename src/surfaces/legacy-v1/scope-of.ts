/** The scope that a request needs, known from its route alone: nothing has been looked up when it is checked. */
import type { FastifyRequest } from 'fastify'
import type { Scope } from '../../domain/accounts/caller.ts'
import { barePathOf } from './operation.ts'

/** By the first words of a route without `/api`. Files of whatever kind, a client's settings among them, are assets. */
const KIND: Readonly<Record<string, 'jobs' | 'assets'>> = {
  prompt: 'jobs',
  queue: 'jobs',
  interrupt: 'jobs',
  history: 'jobs',
  history_v2: 'jobs',
  job: 'jobs',
  jobs: 'jobs',
  ws: 'jobs',
  'internal/logs': 'jobs',
  'internal/files': 'assets',
  upload: 'assets',
  view: 'assets',
  view_metadata: 'assets',
  userdata: 'assets',
  'v2/userdata': 'assets',
  settings: 'assets',
  models: 'assets',
  'experiment/models': 'assets',
  embeddings: 'assets',
  assets: 'assets',
  tags: 'assets',
}
const READS = ['GET', 'HEAD', 'PATCH']

/** null: every caller may, as with what describes the service itself. */
export function scopeOf(request: FastifyRequest): Scope | null {
  const { method } = request
  const [, first, second] = barePathOf(request).split('/')
  const kind = KIND[first] ?? KIND[`${first}/${second}`]
  if (kind === undefined) return null
  return `${kind}:${READS.includes(method) ? 'read' : 'write'}`
}
