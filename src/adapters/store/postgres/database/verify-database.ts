/** Reads which bytes the records refer to, to check them from outside, also while services run. */
import type { PostgresPlace } from '../../../../../lib/postgres/driver.ts'
import { findReferredBytes, type VerifiedDatabase } from '../../stores/referred-bytes.ts'
import { runOn } from '../shared-stores.ts'
import { toOpenError } from './open-error.ts'
import { openSession } from './session.ts'

/** Throws StoreOpenError when the database cannot be used at all. */
export async function verifyDatabase(options: PostgresPlace): Promise<VerifiedDatabase> {
  await using session = await openSession(options).catch((error: unknown) => {
    throw toOpenError(error, options.url)
  })
  return { problems: [], blobs: await runOn(session, findReferredBytes()) }
}
