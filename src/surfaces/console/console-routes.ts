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

/** Which scopes a route needs, by the first word of its path; `jobs` where it is not listed, null for none. */
const KIND_OF_ROUTE: Readonly<Record<string, 'assets' | 'models' | 'keys' | null>> = {
  'openapi.json': null,
  assets: 'assets',
  // Who may read an asset depends on what it is: the operation asks `mustRead`.
  thumbnails: null,
  models: 'models',
  calls: 'models',
  keys: 'keys',
}

/** The scopes follow from the route alone, so they are checked before anything is looked up. An empty list: every caller may. */
export function scopesOf(request: FastifyRequest): readonly Scope[] {
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  const [, first = ''] = /\/console\/v1\/([^/]+)/.exec(request.routeOptions.url ?? '') ?? []
  const kind = KIND_OF_ROUTE[first]
  if (kind === null) return []
  // One scope for reading and writing: only those who manage keys have a reason to list them.
  if (kind === 'keys') return ['keys:write']
  if (kind === 'models') return [isRead ? 'models:read' : 'models:run']
  return [`${kind ?? 'jobs'}:${isRead ? 'read' : 'write'}`]
}
