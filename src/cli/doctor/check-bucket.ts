/** Checks of the bucket that holds the bytes: what the service does with it is done once, and whose bytes it holds. */
import { type BucketFacts, inspectBucket } from '../../compose/storage/inspect-bucket.ts'
import type { LoadedConfig } from '../../config/config.ts'
import { type Finding, fail, ok, toReason } from './check.ts'

const WHAT = 'bucket'

const REMEDIES: Readonly<Record<NonNullable<BucketFacts['failed']>['step'], string>> = {
  put: 'check the address, the keys (ATELIER_BLOBS_KEYS) and that they may write below the prefix',
  get: 'let the keys read objects below the prefix',
  range: 'use a service that answers requests for ranges',
  presigned: 'check publicEndpoint and the clocks, or start with --content proxy',
  list: 'let the keys list the bucket: without it left-over objects are never found',
  delete: 'let the keys delete objects below the prefix',
}

/** Empty when bytes lie in files. */
export async function checkBucket({ config: { blobs, store }, secrets }: LoadedConfig): Promise<readonly Finding[]> {
  if (blobs.kind !== 's3' || store.kind !== 'postgres') return []
  try {
    const { worked, failed, belongs } = await inspectBucket(blobs, { database: store, secrets })
    if (failed !== null) {
      const { step, reason, remedy } = failed
      return [fail(WHAT, `${blobs.shown}: ${step}: ${reason}`, remedy ?? REMEDIES[step])]
    }
    const says = `${blobs.shown}: ${worked.join(', ')}`
    if (belongs === 'elsewhere') {
      return [fail(WHAT, `${says}; it holds the bytes of another database`, 'name the bucket of this database')]
    }
    return [
      ok(WHAT, `${says}; ${belongs === 'here' ? 'its id is that of the database' : 'no service has used it yet'}`),
    ]
  } catch (error) {
    return [fail(WHAT, `${blobs.shown}: ${toReason(error)}`, 'see docs/scale-out.md')]
  }
}
