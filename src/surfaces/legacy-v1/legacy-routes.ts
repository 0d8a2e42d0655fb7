/** Every route of the surface, one line per operation. */
import type { Api, OperationDeps } from './legacy-operation.ts'
import { cancelJobs } from './operations/cancel-jobs.ts'
import { getFeatures } from './operations/get-features.ts'
import { getHistoryV2 } from './operations/get-history-v2.ts'
import { getJob } from './operations/get-job.ts'
import { getJobStatus } from './operations/get-job-status.ts'
import { getOpenapi } from './operations/get-openapi.ts'
import { getPrompt } from './operations/get-prompt.ts'
import { getQueue } from './operations/get-queue.ts'
import { getViewMetadata } from './operations/get-view-metadata.ts'
import { getWs } from './operations/get-ws.ts'
import { getHistory } from './operations/history.ts'
import { logs } from './operations/internal.ts'
import { internalFiles } from './operations/internal-files.ts'
import { getJobAssets } from './operations/jobs.ts'
import { listJobs } from './operations/list-jobs.ts'
import { getModels } from './operations/models.ts'
import { getObjectInfo } from './operations/object-info.ts'
import { postHistory } from './operations/post-history.ts'
import { postInterrupt } from './operations/post-interrupt.ts'
import { postUploadImage } from './operations/post-upload-image.ts'
import { postPrompt } from './operations/prompts.ts'
import { postQueue } from './operations/queue.ts'
import { getSystemStats } from './operations/server-info.ts'
import { smallAnswers } from './operations/small-answers.ts'
import { postUploadMask } from './operations/uploads.ts'
import { userSettings } from './operations/user-settings.ts'
import { userdata } from './operations/userdata.ts'
import { users } from './operations/users.ts'
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
  getWs,
  getSystemStats,
  getFeatures,
  getModels,
  userSettings,
  users,
  userdata,
  logs,
  internalFiles,
  smallAnswers,
  getOpenapi,
]

export function registerRoutes(api: Api, deps: OperationDeps): void {
  for (const register of OPERATIONS) register(api, deps)
}
