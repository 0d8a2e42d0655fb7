/** Every route of the surface. */
import type { Api, OperationDeps } from './legacy-operation.ts'
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
