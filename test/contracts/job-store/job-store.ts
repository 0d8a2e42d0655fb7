/** How every job store behaves. The suite of states and counters under random operations is in job-store-model.ts. */

import type { StoreOpener } from '../store-under-test.ts'
import { testJobStoreAdoptions } from './job-store-adoptions.ts'
import { testJobStoreClaims } from './job-store-claims.ts'
import { testJobStoreCommits } from './job-store-commits.ts'
import { testJobStoreLanes } from './job-store-lanes.ts'
import { testJobStoreLeases } from './job-store-leases.ts'
import { testJobStoreReads } from './job-store-reads.ts'
import { testJobStoreReuse } from './job-store-reuse.ts'
import { testJobStoreShares } from './job-store-shares.ts'
import { testJobStoreSubmits } from './job-store-submits.ts'
import { testJobStoreSweeps } from './job-store-sweeps.ts'
import { testJobStoreTurns } from './job-store-turns.ts'

export function testJobStore(opener: StoreOpener): void {
  testJobStoreSubmits(opener)
  testJobStoreReads(opener)
  testJobStoreClaims(opener)
  testJobStoreLanes(opener)
  testJobStoreShares(opener)
  testJobStoreCommits(opener)
  testJobStoreLeases(opener)
  testJobStoreAdoptions(opener)
  testJobStoreTurns(opener)
  testJobStoreReuse(opener)
  testJobStoreSweeps(opener)
}
