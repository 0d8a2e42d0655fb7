/** Everything the reader can answer. */
import type { DatabaseSync } from 'node:sqlite'
import { prepareShared, type SharedOperations } from '../shared-stores.ts'
import { prepareCountByStatus } from './accounts/account-counters.ts'
import { prepareFindBatch } from './batches/read-batch.ts'
import { prepareFindClaim } from './jobs/claim-job.ts'
import {
  prepareFindHolders,
  prepareFindJob,
  prepareFindLog,
  prepareFindOwner,
  prepareFindWorkflow,
} from './jobs/find-job.ts'
import { prepareCompleteJob } from './jobs/job-row.ts'
import { prepareListBatchJobs, prepareListJobs, prepareListLabelledJobs } from './jobs/list-job-rows.ts'
import { prepareFindRecord, prepareListHistory, prepareListLive, prepareSelectJobs } from './jobs/read-run-records.ts'
import { prepareFindResult } from './jobs/reuse-result.ts'
import { prepareFindLanes, prepareFindOutwaited } from './jobs/waiting-lanes.ts'
import { prepareCheckIntegrity } from './meta.ts'
import { prepareFindOutputs, prepareReadQueue } from './search/read-queue.ts'
import {
  prepareCountEnded,
  prepareCountJobs,
  prepareFindDetails,
  prepareFindSummaries,
  prepareSearchJobs,
} from './search/search-jobs.ts'

export function prepareReadOperations(database: DatabaseSync) {
  const completeJob = prepareCompleteJob(database)
  return {
    ...prepareShared(database, 'reader'),
    findBatch: prepareFindBatch(database),
    listBatchJobs: prepareListBatchJobs(database, { completeJob }),
    findJob: prepareFindJob(database, { completeJob }),
    findClaim: prepareFindClaim(database, { completeJob }),
    findResult: prepareFindResult(database),
    findOwner: prepareFindOwner(database),
    findHolders: prepareFindHolders(database),
    findWorkflow: prepareFindWorkflow(database),
    findLog: prepareFindLog(database),
    listJobs: prepareListJobs(database, { completeJob }),
    listLabelledJobs: prepareListLabelledJobs(database, { completeJob }),
    findLanes: prepareFindLanes(database),
    findOutwaited: prepareFindOutwaited(database),
    searchJobs: prepareSearchJobs(database),
    findSummaries: prepareFindSummaries(database),
    findDetails: prepareFindDetails(database),
    countJobs: prepareCountJobs(database),
    countEnded: prepareCountEnded(database),
    findOutputs: prepareFindOutputs(database),
    readQueue: prepareReadQueue(database),
    countByStatus: prepareCountByStatus(database),
    findRecord: prepareFindRecord(database, { completeJob }),
    listLive: prepareListLive(database, { completeJob }),
    listHistory: prepareListHistory(database, { completeJob }),
    selectJobs: prepareSelectJobs(database, { completeJob }),
    checkIntegrity: prepareCheckIntegrity(database),
  }
}

export type ReadOperations = ReturnType<typeof prepareReadOperations> & SharedOperations
