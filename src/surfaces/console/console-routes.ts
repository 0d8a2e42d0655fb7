/** Every operation of the console's API. */
import type { FastifyInstance } from 'fastify'
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

export const OPERATIONS: readonly Register[] = [
  getSession,
  createSession,
  endSession,
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
