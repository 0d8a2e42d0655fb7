/**
 * The ends of joined workers' runs, before the store gets them: where outputs have to be checked, the service asks, and not the worker.
 * A worker that repeats its end while the hook is asked waits for the same answer.
 */
import type { StoreBlob } from '../assets/blob-store.ts'
import { invalidField, ServiceError } from '../errors.ts'
import type { EventBus } from '../events/event-bus.ts'
import type { Lease, RunChange } from '../jobs/job-store.ts'
import { type OutputCheck, type OutputVerdict, toCheckedEnd } from '../jobs/outputs/check-outputs.ts'
import type { HeldClaim, HeldClaims } from './held-claims.ts'

export interface CheckEndDeps {
  readonly outputCheck: Pick<OutputCheck, 'covers' | 'judge'> & { readonly storeHeld: StoreBlob }
  readonly held: Pick<HeldClaims, 'mustFind' | 'forget'>
  readonly bus: Pick<EventBus<never>, 'onChanged'>
}

/** `claim`: what the lease holds; null: nothing, any more. Answers with what is to be written. */
type CheckEnd = (lease: Lease, claim: HeldClaim | null, change: RunChange) => Promise<RunChange>

export function createCheckEnd({ outputCheck, held, bus }: CheckEndDeps): CheckEnd {
  const asked = new Map<string, Promise<OutputVerdict>>()

  async function ask(lease: Lease, { job }: HeldClaim, change: RunChange): Promise<OutputVerdict> {
    const over = new AbortController()
    // A store that is away says nothing about the lease.
    const findStatus = async () => (await held.mustFind(lease)).job.status
    const look = async () => {
      held.forget(lease.leaseId)
      const status = await findStatus().catch((error: unknown) => (isGone(error) ? null : job.status))
      if (status === null || status === 'canceling') over.abort(new Error('the job was canceled, or its lease is lost'))
    }
    const stop = bus.onChanged(({ jobId }) => {
      if (jobId === job.id) void look()
    })
    try {
      // A cancel may have come before anybody listened.
      await look()
      over.signal.throwIfAborted()
      return await outputCheck.judge({
        job,
        outputs: change.outputs ?? [],
        store: outputCheck.storeHeld,
        signal: over.signal,
      })
    } catch (error) {
      if (!over.signal.aborted) throw error
      return { verdict: 'cancel' }
    } finally {
      stop()
    }
  }

  return async (lease, claim, change) => {
    const { finish } = change
    // Without a lease the store takes nothing; should it do so after all, then nothing that nobody has looked at.
    if (claim === null) return finish === undefined ? change : { ...change, outputs: [] }
    if (!outputCheck.covers(claim.job.metadata)) return change
    if (finish === undefined) {
      if ((change.outputs ?? []).length === 0) return change
      throw invalidField('change.outputs', 'must come with the end of the run, because they are checked then')
    }
    if (finish.status !== 'succeeded')
      return toCheckedEnd({ ...change, finish }, { verdict: 'withhold' }, claim.job.metadata)
    const known = asked.get(lease.leaseId)
    const verdict = known ?? ask(lease, claim, change).finally(() => asked.delete(lease.leaseId))
    if (known === undefined) asked.set(lease.leaseId, verdict)
    return toCheckedEnd({ ...change, finish }, await verdict, claim.job.metadata)
  }
}

function isGone(error: unknown): boolean {
  return error instanceof ServiceError && error.refusal === 'not_found'
}
