/** Everything the reader can answer. */
import type { DatabaseSync } from 'node:sqlite'
import { prepareCountByStatus, prepareFindUse } from './accounts.ts'
import { prepareChangedApiKeys, prepareFindApiKey, prepareListApiKeys } from './api-keys.ts'
import { prepareListAudit } from './audit.ts'
import { prepareKnownBlobs, prepareStoredBytes } from './blobs.ts'
import { prepareCanPay, prepareStanding } from './call-pool.ts'
import { prepareCheckLedger } from './check-ledger.ts'
import { prepareListDeployments, preparePoolLoads } from './deployments.ts'
import { prepareChangedAccounts, prepareFindAccount } from './directory.ts'
import {
  prepareFindAssets,
  prepareFindInFolders,
  prepareFindNewestByHash,
  prepareFindOutputsByPath,
  prepareFindOutputsIn,
  prepareFindUploadsByPath,
  prepareListFiles,
} from './find-assets.ts'
import { prepareFindJob, prepareFindLog, prepareFindOwner, prepareFindWorkflow } from './find-job.ts'
import { prepareCompleteJob } from './job-row.ts'
import { prepareFindHolder } from './keys.ts'
import { prepareFindLanes } from './lanes.ts'
import { prepareBalance, prepareLedgerEntries, prepareOpenHolds, prepareUsage } from './ledger-reads.ts'
import { prepareListJobs, prepareListLabelledJobs } from './list-jobs.ts'
import { prepareCheckIntegrity, prepareReadMeta } from './meta.ts'
import { prepareAccountsWaiting, prepareFindRequest } from './queued-calls.ts'
import { prepareFindRecord, prepareListHistory, prepareListLive, prepareSelectJobs } from './read-records.ts'
import { prepareUnfinishedCalls } from './unfinished-calls.ts'
import { prepareListUserFiles, prepareReadUserFile } from './user-files.ts'

export function prepareReadOperations(database: DatabaseSync) {
  const canPay = prepareCanPay(database)
  const completeJob = prepareCompleteJob(database)
  return {
    findJob: prepareFindJob(database, { completeJob }),
    findOwner: prepareFindOwner(database),
    findWorkflow: prepareFindWorkflow(database),
    findLog: prepareFindLog(database),
    listJobs: prepareListJobs(database, { completeJob }),
    listLabelledJobs: prepareListLabelledJobs(database, { completeJob }),
    findLanes: prepareFindLanes(database),
    countByStatus: prepareCountByStatus(database),
    findAssets: prepareFindAssets(database),
    findUploadsByPath: prepareFindUploadsByPath(database),
    findOutputsByPath: prepareFindOutputsByPath(database),
    findInFolders: prepareFindInFolders(database),
    findNewestByHash: prepareFindNewestByHash(database),
    knownBlobs: prepareKnownBlobs(database),
    storedBytes: prepareStoredBytes(database),
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
    unfinishedCalls: prepareUnfinishedCalls(database),
    callStanding: prepareStanding(database),
    canPay: (query: { readonly accountId: string; readonly micros: number }) => canPay(query.accountId, query.micros),
    findRequest: prepareFindRequest(database),
    accountsWaiting: prepareAccountsWaiting(database),
    readMeta: prepareReadMeta(database),
    checkIntegrity: prepareCheckIntegrity(database),
    findAccount: prepareFindAccount(database),
    changedAccounts: prepareChangedAccounts(database),
    findApiKey: prepareFindApiKey(database),
    listApiKeys: prepareListApiKeys(database),
    changedApiKeys: prepareChangedApiKeys(database),
    balance: prepareBalance(database),
    ledgerEntries: prepareLedgerEntries(database),
    openHolds: prepareOpenHolds(database),
    usage: prepareUsage(database),
    checkLedger: prepareCheckLedger(database),
    listAudit: prepareListAudit(database),
    listDeployments: prepareListDeployments(database),
    poolLoads: preparePoolLoads(database),
  }
}

export type ReadOperations = ReturnType<typeof prepareReadOperations>
