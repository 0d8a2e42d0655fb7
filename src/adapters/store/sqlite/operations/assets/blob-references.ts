/** Blobs that lose a reference with what an operation removes. */
import type { DatabaseSync } from 'node:sqlite'
import { offerBlobs } from '../../../stores/blob-references.ts'
import { runOn } from '../../shared-stores.ts'
import { openStatements } from '../../statements.ts'

interface OfferedBlob {
  readonly hash: string
  readonly sizeBytes: number
  readonly now: number
}

export function prepareOfferBlob(database: DatabaseSync): (blob: OfferedBlob) => void {
  const statements = openStatements(database)
  return ({ now, ...blob }) => runOn(statements, offerBlobs([blob], new Date(now)))
}
