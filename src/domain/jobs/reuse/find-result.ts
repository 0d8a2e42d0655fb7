/**
 * Finds the result that answers a job without a run: that of an earlier job of the same account with the same key, while all of its
 * outputs and their bytes are there. Jobs that did not ask for reuse cost nothing here.
 */
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import type { Clock } from '../../../../lib/clock.ts'
import type { NewId } from '../../../../lib/ids.ts'
import type { BlobStore } from '../../assets/blob-store.ts'
import type { JobStore, ResultAgain } from '../job-store.ts'
import { type ReuseMode, type RunFacts, toResultKey } from './result-key.ts'

/** `key` null: the job can neither be answered again nor answer others, and `whyNot` says why. */
export type ReuseLook =
  | { readonly key: null; readonly whyNot: string }
  /** No earlier result answers it yet. */
  | { readonly key: string; readonly found: null }
  | { readonly key: string; readonly found: FoundJob }

interface FoundJob {
  readonly jobId: string
  readonly again: ResultAgain
  /** How long the earlier run took: the time that is saved. */
  readonly runMs: number
}

export interface Reuse {
  /** `asked`: what the job itself says; left out or null: the mode of its account. */
  isWanted(accountId: string, asked?: ReuseMode | null): boolean
  look(accountId: string, facts: RunFacts): Promise<ReuseLook>
}

interface ReuseDeps {
  readonly store: Pick<JobStore, 'findResult'>
  readonly blobs: Pick<BlobStore, 'stat'>
  /** What can run in a pool. */
  readonly catalog: (pool: string) => NodeCatalog
  /** Some engine of the pool has not said yet what it can run. */
  readonly isCatalogOpen: (pool: string) => boolean
  readonly modeOf: (accountId: string) => ReuseMode
  readonly newId: NewId
  readonly clock: Clock
}

export function createReuse(deps: ReuseDeps): Reuse {
  const { store, blobs, clock, newId } = deps

  /** Records say what should be there; whether bytes were lost, only their storage knows. */
  async function areStored(
    outputs: readonly { readonly hash: string; readonly sizeBytes: number }[],
  ): Promise<boolean> {
    for (const { hash, sizeBytes } of outputs) {
      if ((await blobs.stat(hash))?.sizeBytes !== sizeBytes) return false
    }
    return true
  }

  return {
    isWanted: (accountId, asked) => (asked ?? deps.modeOf(accountId)) === 'exact',
    async look(accountId, facts) {
      const { pool } = facts
      if (deps.isCatalogOpen(pool)) return { key: null, whyNot: 'an engine has not said yet what it can run' }
      const made = toResultKey(facts, deps.catalog(pool))
      if ('whyNot' in made) return { key: null, whyNot: made.whyNot }
      const { key } = made
      const kept = await store.findResult(accountId, key, clock.now())
      if (kept === null || !(await areStored(kept.outputs))) return { key, found: null }
      const { jobId, outputs, runMs } = kept
      return { key, found: { jobId, runMs, again: { key, assetIds: outputs.map(() => newId()) } } }
    },
  }
}
