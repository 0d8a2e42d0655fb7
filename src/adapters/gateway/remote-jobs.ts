/** The worker's side of the job store, spoken to a service that was joined. */

import { type JsonValue, parseLosslessJson, stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import type { Log } from '../../../lib/log.ts'
import { toTraceHeaders } from '../../../lib/tracing/trace-context.ts'
import type { Tracer } from '../../../lib/tracing/tracer.ts'
import type { Fleet } from '../../domain/engine/fleet/fleet.ts'
import type { EngineOffer } from '../../domain/engine/fleet/lane-offers.ts'
import type { RunModel } from '../../domain/engine/model-port.ts'
import { outlastOutage, ServiceError } from '../../domain/errors.ts'
import type { Claim, ClaimRequest, CommitOutcome, Lease, RunChange, RunStore } from '../../domain/jobs/job-store.ts'
import type { JobStatus } from '../../domain/jobs/transitions.ts'
import { type ClaimFields, readClaim } from '../../domain/workers/wire/claim-wire.ts'
import { END_MS, type ErrorFields, readError, writeChange, writeGpu } from '../../domain/workers/wire/run-wire.ts'
import { ClaimScout } from './claim-scout.ts'
import type { GatewayClient } from './gateway-client.ts'
import type { HeldJobs } from './held-jobs.ts'
import type { RemoteBus } from './remote-bus.ts'

export interface RemoteJobsDeps {
  readonly client: Pick<GatewayClient, 'call'>
  readonly held: HeldJobs
  readonly bus: Pick<RemoteBus, 'watch' | 'unwatch' | 'flush' | 'during' | 'ringWork'>
  readonly describe: Fleet['describe']
  /** Before the claim is handed to a worker. */
  readonly onClaimed: (claim: Claim) => Promise<void>
  readonly maxWaitMs: number
  readonly log: Log
}

type CommitFields =
  | Extract<CommitOutcome, { outcome: 'lost' }>
  | (Omit<Extract<CommitOutcome, { outcome: 'committed' }>, 'error'> & { readonly error?: ErrorFields | null })

// Beyond the time for which the service may hold an answer back.
const WAIT_GRACE_MS = 15_000

export class RemoteJobs implements RunStore {
  readonly #deps: RemoteJobsDeps
  readonly #scouts = new Map<string, ClaimScout>()

  constructor(deps: RemoteJobsDeps) {
    this.#deps = deps
  }

  async claim(request: ClaimRequest): Promise<Claim | null> {
    const claim = await this.#scoutOf(request.pool).claim(request)
    // Other pools wait with the same slots.
    if (claim === null) return null
    for (const [pool, scout] of this.#scouts) if (pool !== request.pool) scout.cancel()
    await this.#deps.onClaimed(claim)
    return claim
  }

  async renew(leases: readonly Lease[]): ReturnType<RunStore['renew']> {
    const json = { leases: leases.map(({ jobId, leaseId }) => ({ job_id: jobId, lease_id: leaseId })) }
    const answer = await this.#deps.client.call<{ held: readonly { job_id: string; status: JobStatus }[] }>({
      method: 'POST',
      path: '/leases',
      json,
    })
    const standing = (answer?.held ?? []).map(({ job_id: jobId, status }) => ({ jobId, status }))
    const isStanding = new Set(standing.map(({ jobId }) => jobId))
    for (const { jobId, leaseId } of leases) if (!isStanding.has(jobId)) this.#forget(leaseId)
    return standing
  }

  async commit({ jobId, leaseId }: Lease, change: RunChange): Promise<CommitOutcome> {
    const { held, bus, client } = this.#deps
    const known = held.get(leaseId)
    const fields = writeChange(change, ({ hash }) => known?.receipts.get(hash) ?? '')
    const isChecked = change.finish !== undefined && known?.terms.holdsOutputs === true
    // Whoever watches the run hears its last events before its end.
    if (change.finish !== undefined) await bus.flush()
    const outcome = await bus.during(jobId, () =>
      client.call<CommitFields>({
        method: 'POST',
        path: `/jobs/${jobId}/commits`,
        json: { lease_id: leaseId, change: fields },
        ...(isChecked && { withinMs: END_MS }),
      }),
    )
    if (outcome === null || outcome.outcome === 'lost') {
      this.#forget(leaseId)
      return { outcome: 'lost' }
    }
    // Its last word is said right after this, and must still be heard as its.
    if (change.finish !== undefined) setImmediate(() => this.#forget(leaseId))
    const { error, ...committed } = outcome
    return error === undefined ? committed : { ...committed, error: error && readError(error) }
  }

  async release(leases: Parameters<RunStore['release']>[0]): ReturnType<RunStore['release']> {
    for (const { leaseId } of leases) this.#forget(leaseId)
    await this.#deps.client.call({
      method: 'POST',
      path: '/release',
      json: {
        leases: leases.map(({ jobId, leaseId, isSpent = false, isEngineLoss = false, gpu = null }) => ({
          ...{ job_id: jobId, lease_id: leaseId, is_spent: isSpent, is_engine_loss: isEngineLoss },
          ...(gpu !== null && { gpu: writeGpu(gpu) }),
        })),
      },
    })
    // The service tells everybody what became of them.
    return []
  }

  async reserveOutputNumbers(
    _accountId: string,
    folder: string,
    prefix: string,
    count: number,
    lease: Lease,
  ): Promise<number> {
    const answer = await this.#deps.client.call<{ first: number }>({
      method: 'POST',
      path: `/jobs/${lease.jobId}/numbers`,
      json: { lease_id: lease.leaseId, folder, prefix, count },
    })
    return answer?.first ?? 1
  }

  /** Takes questions back that wait with engines which are not offered any more. */
  offersChanged(offersOf: (pool: string) => readonly EngineOffer[]): void {
    for (const [pool, scout] of this.#scouts) scout.cancel(this.#signatureOf(offersOf(pool)))
  }

  /** Asks for no work of a pool any more. */
  async endPool(pool: string): Promise<void> {
    const scout = this.#scouts.get(pool)
    this.#scouts.delete(pool)
    await scout?.end()
  }

  /** Asks for nothing more, and gives back what no run has taken. */
  async end(): Promise<void> {
    await Promise.all([...this.#scouts.values()].map((scout) => scout.end()))
  }

  #describeOffers(engines: readonly EngineOffer[]) {
    return engines.map(({ engineId }) => {
      const { loadedWeights, brokeLatestRun } = this.#deps.describe(engineId)
      return { name: engineId, loaded_weights: loadedWeights, broke_latest_run: brokeLatestRun }
    })
  }

  #signatureOf(engines: readonly EngineOffer[]): string {
    return JSON.stringify(this.#describeOffers(engines))
  }

  #forget(leaseId: string): void {
    const { held, bus } = this.#deps
    const known = held.get(leaseId)
    held.drop(leaseId)
    if (known !== null) bus.unwatch(known.lease.jobId)
  }

  async #ask(
    { pool, engines }: ClaimRequest,
    { leaseId, waitMs, signal }: { leaseId: string; waitMs: number; signal?: AbortSignal },
  ): Promise<Claim | null> {
    const { client, held, bus } = this.#deps
    const fields = await client.call<ClaimFields>({
      method: 'POST',
      path: '/claims',
      json: { pool, lease_id: leaseId, wait_ms: waitMs, engines: this.#describeOffers(engines) },
      withinMs: waitMs + WAIT_GRACE_MS,
      ...(signal && { signal }),
    })
    if (fields === null) return null
    const { claim, terms } = readClaim(fields, leaseId)
    held.add(claim, terms)
    bus.watch({ jobId: claim.job.id, leaseId })
    return claim
  }

  async #giveBack(leaseId: string): Promise<void> {
    this.#forget(leaseId)
    try {
      await this.#deps.client.call({ method: 'POST', path: '/release', json: { leases: [{ lease_id: leaseId }] } })
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'a job could not be given back; its lease runs out by itself')
    }
  }

  #scoutOf(pool: string): ClaimScout {
    const scout =
      this.#scouts.get(pool) ??
      new ClaimScout({
        ask: (request, options) => this.#ask(request, options),
        giveBack: (leaseId) => this.#giveBack(leaseId),
        signatureOf: ({ engines }) => this.#signatureOf(engines),
        ring: () => this.#deps.bus.ringWork(pool),
        maxWaitMs: this.#deps.maxWaitMs,
        log: this.#deps.log,
      })
    this.#scouts.set(pool, scout)
    return scout
  }
}

/** Partner models for nodes that run here, called by the service that was joined: this worker has no provider's key. */
interface ModelFields {
  readonly output: string
  readonly images: readonly string[]
}

// The service has a deadline of its own for each call.
const MODEL_MS = 3_600_000

export function createRemoteModels(client: Pick<GatewayClient, 'call'>, held: HeldJobs, tracer?: Tracer): RunModel {
  return async function runModel({ jobId, model, input, images, key }, { signal }) {
    const lease = held.ofJob(jobId)?.lease
    if (lease === undefined) throw new ServiceError('not_found', 'the job of this call is not held any more')
    const json = {
      lease_id: lease.leaseId,
      model,
      input: stringifyLosslessJson(input),
      images: images.map((image) => Buffer.from(image).toString('base64')),
      key,
    }
    // The call is made by the service, and belongs to the trace of the run.
    const trace = tracer?.active()?.context
    const headers = trace === undefined ? {} : toTraceHeaders(trace)
    const asked = { method: 'POST', path: `/jobs/${jobId}/models`, json, headers, withinMs: MODEL_MS, signal } as const
    const call = () => client.call<ModelFields>(asked)
    // The key makes a repeated call the same one: it is paid once.
    const answer = await outlastOutage(call, signal)
    return {
      output: parseLosslessJson(answer?.output ?? 'null') as JsonValue,
      images: (answer?.images ?? []).map((image) => Buffer.from(image, 'base64')),
    }
  }
}
