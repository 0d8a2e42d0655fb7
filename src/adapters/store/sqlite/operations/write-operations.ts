/** Everything the writer can do. An operation depends on the database and its input alone: a batch may be run again. */
import type { DatabaseSync } from 'node:sqlite'
import { preparePutAccount, prepareRepairCounters } from './accounts.ts'
import { prepareOfferBlob, prepareRetireBlobs } from './blobs.ts'
import { prepareCancel } from './cancel.ts'
import { prepareClaim } from './claim.ts'
import { prepareCommit } from './commit.ts'
import { prepareCompleteJob } from './job-row.ts'
import { prepareSweepKeys } from './keys.ts'
import { prepareJoinLane } from './lanes.ts'
import { prepareReap, prepareRelease, prepareRenew } from './leases.ts'
import { prepareWriteMeta } from './meta.ts'
import { prepareMint } from './mint-asset.ts'
import { prepareReserveOutputNumbers } from './output-numbers.ts'
import { prepareExpireAssets, prepareRemoveAsset } from './remove-assets.ts'
import { prepareExpireJobs, prepareRemoveJobs } from './retention.ts'
import { prepareSubmit } from './submit.ts'

export function prepareWriteOperations(database: DatabaseSync) {
  const completeJob = prepareCompleteJob(database)
  return {
    submit: prepareSubmit(database),
    claim: prepareClaim(database, { completeJob }),
    joinLane: prepareJoinLane(database),
    renew: prepareRenew(database),
    commit: prepareCommit(database),
    release: prepareRelease(database),
    cancel: prepareCancel(database, { completeJob }),
    reap: prepareReap(database),
    expireJobs: prepareExpireJobs(database),
    removeJobs: prepareRemoveJobs(database),
    reserveOutputNumbers: prepareReserveOutputNumbers(database),
    announceBlob: prepareOfferBlob(database),
    mint: prepareMint(database),
    removeAsset: prepareRemoveAsset(database),
    expireAssets: prepareExpireAssets(database),
    retireBlobs: prepareRetireBlobs(database),
    putAccount: preparePutAccount(database),
    repairCounters: prepareRepairCounters(database),
    sweepKeys: prepareSweepKeys(database),
    writeMeta: prepareWriteMeta(database),
  }
}

export type WriteOperations = ReturnType<typeof prepareWriteOperations>
