/** Everything the reader can answer. */
import type { DatabaseSync } from 'node:sqlite'
import { prepareShared, type SharedOperations } from '../shared-stores.ts'
import { prepareFindClaim } from './jobs/claim-job.ts'
import { prepareFindJob } from './jobs/find-job.ts'
import { prepareCompleteJob } from './jobs/job-row.ts'
import { prepareListBatchJobs, prepareListJobs, prepareListLabelledJobs } from './jobs/list-job-rows.ts'
import { prepareFindRecord, prepareListHistory, prepareListLive, prepareSelectJobs } from './jobs/read-run-records.ts'
import { prepareCheckIntegrity } from './meta.ts'

export function prepareReadOperations(database: DatabaseSync) {
  const completeJob = prepareCompleteJob(database)
  return {
    ...prepareShared(database, 'reader'),
    listBatchJobs: prepareListBatchJobs(database, { completeJob }),
    findJob: prepareFindJob(database, { completeJob }),
    findClaim: prepareFindClaim(database),
    listJobs: prepareListJobs(database, { completeJob }),
    listLabelledJobs: prepareListLabelledJobs(database, { completeJob }),
    findRecord: prepareFindRecord(database, { completeJob }),
    listLive: prepareListLive(database, { completeJob }),
    listHistory: prepareListHistory(database, { completeJob }),
    selectJobs: prepareSelectJobs(database, { completeJob }),
    checkIntegrity: prepareCheckIntegrity(database),
  }
}

export type ReadOperations = ReturnType<typeof prepareReadOperations> & SharedOperations
