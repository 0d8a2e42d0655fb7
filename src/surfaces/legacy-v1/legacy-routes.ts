/** Every route of the surface, and the scope that a request needs for it. */
import type { FastifyRequest } from 'fastify'
import type { Scope } from '../../domain/accounts/caller.ts'
import { type Api, barePathOf, type OperationDeps } from './legacy-operation.ts'
import { getHistory, getHistoryV2, postHistory } from './operations/history.ts'
import { internalFiles, logs } from './operations/internal.ts'
import { cancelJobs, getJob, getJobAssets, getJobStatus, listJobs } from './operations/jobs.ts'
import { getModels, getViewMetadata } from './operations/models.ts'
import { getObjectInfo } from './operations/object-info.ts'
import { getPrompt, postPrompt } from './operations/prompts.ts'
import { getQueue, postInterrupt, postQueue } from './operations/queue.ts'
import { fixedAnswers, getFeatures, getOpenapi, getSystemStats, getWs } from './operations/server-info.ts'
import { postUploadImage, postUploadMask } from './operations/uploads.ts'
import { userdata } from './operations/userdata.ts'
import { userSettings, users } from './operations/users.ts'
import { getVideoMetadata } from './operations/video-metadata.ts'
import { getView } from './operations/view.ts'

const OPERATIONS = [
  postPrompt,
  getPrompt,
  getQueue,
  postQueue,
  postInterrupt,
  getHistory,
  postHistory,
  getHistoryV2,
  listJobs,
  getJob,
  getJobAssets,
  cancelJobs,
  getJobStatus,
  getObjectInfo,
  postUploadImage,
  postUploadMask,
  getView,
  getViewMetadata,
  getVideoMetadata,
  getWs,
  getSystemStats,
  getFeatures,
  getModels,
  userSettings,
  users,
  userdata,
  logs,
  internalFiles,
  fixedAnswers,
  getOpenapi,
]

export function registerRoutes(api: Api, deps: OperationDeps): void {
  for (const register of OPERATIONS) register(api, deps)
}

/** By the first words of a route without `/api`. Files of every kind, a client's settings among them, are assets. */
const KIND_OF_ROUTE: Readonly<Record<string, 'jobs' | 'assets'>> = {
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
// PATCH only subscribes to log lines.
const READS = ['GET', 'HEAD', 'PATCH']

/**
 * Known from the route alone, so that it is checked before anything is looked up. null: every caller may, as with routes that
 * describe the service itself.
 */
export function scopeOf(request: FastifyRequest): Scope | null {
  const { method } = request
  const [, first, second] = barePathOf(request).split('/')
  const kind = KIND_OF_ROUTE[first] ?? KIND_OF_ROUTE[`${first}/${second}`]
  if (kind === undefined) return null
  return `${kind}:${READS.includes(method) ? 'read' : 'write'}`
}
