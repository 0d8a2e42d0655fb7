/** What an account keeps, and blobs that lose a reference, with what an operation writes or removes. */
import {
  addRecords as addSteps,
  addBytes as bytesSteps,
  removeRecords as removeSteps,
} from '../../../stores/account-storage.ts'
import { type OfferedBlob, offerBlobs as offerSteps } from '../../../stores/blob-references.ts'
import type { Queryable } from '../../database/statement.ts'
import { runOn } from '../../shared-stores.ts'

export function addRecords(tx: Queryable, records: Parameters<typeof addSteps>[0]): Promise<void> {
  return runOn(tx, addSteps(records))
}

export function removeRecords(tx: Queryable, records: Parameters<typeof removeSteps>[0]): Promise<void> {
  return runOn(tx, removeSteps(records))
}

export function addBytes(
  tx: Queryable,
  changes: readonly (readonly [accountId: string, bytes: number])[],
): Promise<void> {
  return runOn(tx, bytesSteps(changes.map(([accountId, bytes]) => ({ accountId, bytes }))))
}

export function offerBlobs(tx: Queryable, blobs: readonly OfferedBlob[], now: number): Promise<void> {
  return runOn(tx, offerSteps(blobs, new Date(now)))
}
