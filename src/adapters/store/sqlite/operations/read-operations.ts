/** Everything the reader can answer. */
import type { DatabaseSync } from 'node:sqlite'
import { prepareCountByStatus, prepareFindUse } from './accounts.ts'
import { prepareKnownBlobs } from './blobs.ts'
import {
  prepareFindAssets,
  prepareFindNewestByHash,
  prepareFindOutputsByPath,
  prepareFindOutputsIn,
  prepareFindUploadsByPath,
  prepareListFiles,
} from './find-assets.ts'
import { prepareFindJob, prepareFindLog, prepareFindWorkflow } from './find-job.ts'
import { prepareCompleteJob } from './job-row.ts'
import { prepareFindHolder } from './keys.ts'
import { prepareListJobs, prepareListLabelledJobs } from './list-jobs.ts'
import { prepareCheckIntegrity, prepareReadMeta } from './meta.ts'
import { prepareFindRecord, prepareListHistory, prepareListLive, prepareSelectJobs } from './read-records.ts'
import { prepareListUserFiles, prepareReadUserFile } from './user-files.ts'

export function prepareReadOperations(database: DatabaseSync) {
  const completeJob = prepareCompleteJob(database)
  return {
    findJob: prepareFindJob(database, { completeJob }),
    findWorkflow: prepareFindWorkflow(database),
    findLog: prepareFindLog(database),
    listJobs: prepareListJobs(database, { completeJob }),
    listLabelledJobs: prepareListLabelledJobs(database, { completeJob }),
    countByStatus: prepareCountByStatus(database),
    findAssets: prepareFindAssets(database),
    findUploadsByPath: prepareFindUploadsByPath(database),
    findOutputsByPath: prepareFindOutputsByPath(database),
    findNewestByHash: prepareFindNewestByHash(database),
    knownBlobs: prepareKnownBlobs(database),
    findUse: prepareFindUse(database),
    findRecord: prepareFindRecord(database, { completeJob }),
    listLive: prepareListLive(database, { completeJob }),
    listHistory: prepareListHistory(database, { completeJob }),
    selectJobs: prepareSelectJobs(database, { completeJob }),
    listFiles: prepareListFiles(database),
    findOutputsIn: prepareFindOutputsIn(database),
    readUserFile: prepareReadUserFile(database),
    listUserFiles: prepareListUserFiles(database),
    findHolder: prepareFindHolder(database),
    readMeta: prepareReadMeta(database),
    checkIntegrity: prepareCheckIntegrity(database),
  }
}

export type ReadOperations = ReturnType<typeof prepareReadOperations>
