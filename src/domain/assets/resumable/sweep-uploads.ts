/** Removes uploads that nobody continued in their time, with their bytes. */
import type { Clock } from '../../../../lib/clock.ts'
import type { NewId } from '../../../../lib/ids.ts'
import type { BlobStore } from '../blob-store.ts'
import { LEASE_MS } from './upload-leases.ts'
import type { UploadStore } from './upload-store.ts'

interface SweepDeps {
  readonly store: Pick<UploadStore, 'holdExpired' | 'remove'>
  readonly partials: Pick<BlobStore['partials'], 'remove'>
  readonly newId: NewId
  readonly clock: Clock
}

const PORTION = 20

/** Returns how many went. */
export function createSweepUploads({ store, partials, newId, clock }: SweepDeps) {
  return async function sweepUploads({ signal }: { readonly signal?: AbortSignal } = {}): Promise<number> {
    let removed = 0
    for (;;) {
      const leaseId = newId()
      const now = clock.now()
      const held = await store.holdExpired({ leaseId, now, until: new Date(now.getTime() + LEASE_MS) }, PORTION)
      for (const { id, place } of held) {
        if (place !== null) await partials.remove(place)
        await store.remove(id, leaseId)
      }
      removed += held.length
      if (held.length < PORTION || signal?.aborted === true) return removed
    }
  }
}
