/** Everything the reader can answer. */
import type { DatabaseSync } from 'node:sqlite'
import { prepareCountByStatus, prepareFindUse } from './accounts.ts'
import { prepareKnownBlobs } from './blobs.ts'
import {
  prepareFindAssets,
  prepareFindNewestByHash,
  prepareFindOutputsByPath,
  prepareFindUploadsByPath,
} from './find-assets.ts'
import { prepareFindJob, prepareFindLog, prepareFindWorkflow } from './find-job.ts'
import { prepareCompleteJob } from './job-row.ts'
import { prepareFindHolder } from './keys.ts'
import { prepareFindLanes } from './lanes.ts'
import { prepareListJobs, prepareListLabelledJobs } from './list-jobs.ts'
import { prepareCheckIntegrity, prepareReadMeta } from './meta.ts'

export function prepareReadOperations(database: DatabaseSync) {
  const completeJob = prepareCompleteJob(database)
  return {
    findJob: prepareFindJob(database, { completeJob }),
    findWorkflow: prepareFindWorkflow(database),
    findLog: prepareFindLog(database),
    listJobs: prepareListJobs(database, { completeJob }),
    listLabelledJobs: prepareListLabelledJobs(database, { completeJob }),
    findLanes: prepareFindLanes(database),
    countByStatus: prepareCountByStatus(database),
    findAssets: prepareFindAssets(database),
    findUploadsByPath: prepareFindUploadsByPath(database),
    findOutputsByPath: prepareFindOutputsByPath(database),
    findNewestByHash: prepareFindNewestByHash(database),
    knownBlobs: prepareKnownBlobs(database),
    findUse: prepareFindUse(database),
    findHolder: prepareFindHolder(database),
    readMeta: prepareReadMeta(database),
    checkIntegrity: prepareCheckIntegrity(database),
  }
}

export type ReadOperations = ReturnType<typeof prepareReadOperations>
