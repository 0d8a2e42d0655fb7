/** The jobs that this worker holds, with what the service said of each. In memory only: credentials are among it. */
import { isJsonObject, parseLosslessJson } from '../../../lib/json/lossless-json.ts'
import { ServiceError } from '../../domain/errors.ts'
import type { Claim, Lease } from '../../domain/jobs/job-store.ts'
import type { ExtraData } from '../../domain/jobs/submit/extra-data-keeper.ts'
import type { ClaimTerms } from '../../domain/workers/wire/claim-wire.ts'

interface HeldJob {
  readonly lease: Lease
  readonly accountId: string
  readonly inputs: ReadonlyMap<string, number>
  /** What its jobs need of an engine. */
  readonly needs: string
  terms: ClaimTerms
  /** By hash, for outputs that were stored. */
  readonly receipts: Map<string, string>
}

export class HeldJobs {
  readonly #held = new Map<string, HeldJob>()

  add({ job, leaseId, inputs, needs }: Claim, terms: ClaimTerms): void {
    this.#held.set(leaseId, {
      lease: { jobId: job.id, leaseId },
      accountId: job.accountId,
      inputs: new Map(inputs.map(({ hash, sizeBytes }) => [hash, sizeBytes])),
      needs,
      terms,
      receipts: new Map(),
    })
  }

  drop(leaseId: string): void {
    this.#held.delete(leaseId)
  }

  leases(): readonly Lease[] {
    return [...this.#held.values()].map(({ lease }) => lease)
  }

  get(leaseId: string): HeldJob | null {
    return this.#held.get(leaseId) ?? null
  }

  ofJob(jobId: string): HeldJob | null {
    return this.#find(({ lease }) => lease.jobId === jobId)
  }

  /** Any job of the account: what the service says of an account, it says with each of its jobs. */
  mustFindAccount(accountId: string): HeldJob {
    const held = this.#find((each) => each.accountId === accountId)
    if (held === null) throw new ServiceError('not_found', 'no job of this account is held')
    return held
  }

  /** How many bytes an input has. */
  mustFindInput(hash: string): number {
    const sizeBytes = this.#find(({ inputs }) => inputs.has(hash))?.inputs.get(hash)
    if (sizeBytes === undefined) throw new ServiceError('output_unavailable', 'no job with this input is held')
    return sizeBytes
  }

  credentialsOf(jobId: string): ExtraData | null {
    const text = this.ofJob(jobId)?.terms.credentials ?? null
    if (text === null) return null
    const data = parseLosslessJson(text)
    return isJsonObject(data) ? data : null
  }

  forgetCredentials(jobId: string): void {
    const held = this.ofJob(jobId)
    if (held !== null) held.terms = { ...held.terms, credentials: null }
  }

  /** Whether another engine of the service could take over jobs with these needs. */
  hasOther(needs: string): boolean {
    return this.#find((held) => held.needs === needs && held.terms.hasOther) !== null
  }

  #find(is: (held: HeldJob) => boolean): HeldJob | null {
    for (const held of this.#held.values()) if (is(held)) return held
    return null
  }
}
