/** Every operation of the console's API, and the scope that a request needs for it. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Scope } from '../../domain/accounts/caller.ts'
import type { ConsoleDeps } from './console-operation.ts'
import { getOpenapi } from './operations/about.ts'
import { getJobOutputsZip, getOutputsZip } from './operations/archives.ts'
import { getEngines } from './operations/engines.ts'
import { getEvents } from './operations/events.ts'
import { getJob, getJobLayout, getJobLogs, getJobNodes } from './operations/job.ts'
import { cancelJobs, rerunJob } from './operations/job-actions.ts'
import { getJobLive } from './operations/job-live.ts'
import { listJobs } from './operations/jobs.ts'
import { createKey, listKeys, revokeKey, rotateKey } from './operations/keys.ts'
import { deleteForm, getForm, listAssets, listForms, listNodes, putForm } from './operations/library.ts'
import { listCalls, listModels } from './operations/models.ts'
import { getThumbnail, listOutputs } from './operations/outputs.ts'
import { createSession, endSession, getSession } from './operations/session.ts'
import { getUsage } from './operations/usage.ts'

type Register = (app: FastifyInstance, deps: ConsoleDeps) => void

/** For those who are not signed in as well. */
export const OPEN_OPERATIONS: readonly Register[] = [getSession, createSession, endSession]

export const OPERATIONS: readonly Register[] = [
  getOpenapi,
  listJobs,
  getEvents,
  getJob,
  getJobNodes,
  getJobLayout,
  getJobLogs,
  getJobLive,
  cancelJobs,
  rerunJob,
  listOutputs,
  getJobOutputsZip,
  getOutputsZip,
  getThumbnail,
  listNodes,
  getEngines,
  listAssets,
  listForms,
  getForm,
  putForm,
  deleteForm,
  getUsage,
  listModels,
  listCalls,
  listKeys,
  createKey,
  rotateKey,
  revokeKey,
]

/** The schemas of the contract that bodies are checked against. */
export const REQUEST_SCHEMAS: readonly string[] = []

/** By the first word of a route: jobs unless it stands here. */
const KIND_OF_ROUTE: Readonly<Record<string, 'assets' | 'models' | 'keys' | null>> = {
  'openapi.json': null,
  assets: 'assets',
  thumbnails: 'assets',
  models: 'models',
  calls: 'models',
  keys: 'keys',
}

/** Known from the route alone, so that they are checked before anything is looked up. None: every caller may. */
export function scopesOf(request: FastifyRequest): readonly Scope[] {
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  const [, first = ''] = /\/console\/v1\/([^/]+)/.exec(request.routeOptions.url ?? '') ?? []
  const kind = KIND_OF_ROUTE[first]
  if (kind === null) return []
  // Who may see keys may make them as well: their names say little to anybody else.
  if (kind === 'keys') return ['keys:write']
  if (kind === 'models') return [isRead ? 'models:read' : 'models:run']
  const own: Scope = `${kind ?? 'jobs'}:${isRead ? 'read' : 'write'}`
  // It hands out the bytes themselves.
  return (request.routeOptions.url ?? '').endsWith('/outputs.zip') ? [own, 'assets:read'] : [own]
}
