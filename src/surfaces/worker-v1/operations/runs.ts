/** Jobs: taking them, keeping them, writing what their runs do, giving them back. */
import type { FastifyInstance } from 'fastify'
import { stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import type { Lease } from '../../../domain/jobs/job-store.ts'
import {
  type ChangeFields,
  END_MS,
  type GpuFields,
  readGpu,
  writeError,
} from '../../../domain/workers/wire/run-wire.ts'
import type { NamedLease, OutputNumbers } from '../../../domain/workers/worker-runs.ts'
import { needs } from '../../kit/guards/routes.ts'
import { sendJson, untilGone } from '../../kit/request.ts'
import { jobIdOf, WORKER_PATH, type WorkerKit } from '../worker-operation.ts'

interface RunDeps {
  readonly kit: WorkerKit
}

interface ClaimBody {
  readonly pool: string
  readonly lease_id: string
  readonly wait_ms: number
  readonly engines: readonly {
    readonly name: string
    readonly loaded_weights: readonly string[]
    readonly broke_latest_run: boolean
  }[]
}

interface LeaseFields {
  readonly job_id: string
  readonly lease_id: string
}

interface ReturnedFields extends Partial<LeaseFields> {
  readonly lease_id: string
  readonly is_spent?: boolean
  readonly is_engine_loss?: boolean
  readonly gpu?: GpuFields
}

// Longer than the longest wait, so that a waiting request is not cut off.
const WAIT_GRACE_MS = 60_000
// A record of what a run showed, its log and the descriptions of ten thousand outputs.
const MAX_COMMIT_BYTES = 16 * 1024 * 1024

export function claimJob(app: FastifyInstance, { kit }: RunDeps): void {
  app.post(`${WORKER_PATH}/claims`, needs('worker'), async (request, reply) => {
    const body = await kit.readBody<ClaimBody>(request, 'ClaimRequest')
    request.raw.socket.setTimeout(body.wait_ms + WAIT_GRACE_MS)
    const claim = await kit.gateway.runs.claim(kit.workerOf(request), {
      pool: body.pool,
      instanceId: kit.instanceOf(request),
      leaseId: body.lease_id,
      engines: body.engines.map(({ name, loaded_weights: loadedWeights, broke_latest_run: brokeLatestRun }) => ({
        ...{ id: name, loadedWeights, brokeLatestRun },
      })),
      waitMs: body.wait_ms,
      signal: untilGone(request, reply),
    })
    return claim === null ? reply.code(204).send() : sendJson(reply, 200, claim)
  })
}

function toLease({ job_id: jobId, lease_id: leaseId }: LeaseFields): Lease {
  return { jobId, leaseId }
}

function toNamedLease(fields: ReturnedFields): NamedLease {
  const {
    job_id: jobId = null,
    lease_id: leaseId,
    is_spent: isSpent = false,
    is_engine_loss: isEngineLoss = false,
    gpu,
  } = fields
  return { jobId, leaseId, isSpent, isEngineLoss, gpu: gpu === undefined ? null : readGpu(gpu) }
}

export function renewLeases(app: FastifyInstance, { kit }: RunDeps): void {
  app.post(`${WORKER_PATH}/leases`, needs('worker'), async (request, reply) => {
    const { leases } = await kit.readBody<{ readonly leases: readonly LeaseFields[] }>(request, 'LeaseList')
    const held = await kit.gateway.runs.renew(kit.workerOf(request), leases.map(toLease))
    return sendJson(reply, 200, { held: held.map(({ jobId, status }) => ({ job_id: jobId, status })) })
  })
}

export function releaseLeases(app: FastifyInstance, { kit }: RunDeps): void {
  app.post(`${WORKER_PATH}/release`, needs('worker'), async (request, reply) => {
    const { leases } = await kit.readBody<{ readonly leases: readonly ReturnedFields[] }>(request, 'ReturnedLeases')
    await kit.gateway.runs.release(kit.workerOf(request), leases.map(toNamedLease))
    return reply.code(204).send()
  })
}

export function commitRun(app: FastifyInstance, { kit }: RunDeps): void {
  app.post(`${WORKER_PATH}/jobs/:id/commits`, needs('worker'), async (request, reply) => {
    const body = await kit.readBody<{ lease_id: string; change: ChangeFields }>(request, 'Commit', MAX_COMMIT_BYTES)
    const lease = { jobId: jobIdOf(request), leaseId: body.lease_id }
    // The outputs of an end may have to be checked before it is written.
    if (body.change.finish !== undefined) request.raw.socket.setTimeout(END_MS + WAIT_GRACE_MS)
    const outcome = await kit.gateway.runs.commit(kit.workerOf(request), lease, body.change)
    if (outcome.outcome === 'lost') return sendJson(reply, 200, { outcome: 'lost' })
    const { version, status, error } = outcome
    const told = error === undefined ? {} : { error: error && writeError(error) }
    return sendJson(reply, 200, { outcome: 'committed', version, status, ...told })
  })
}

export function reserveNumbers(app: FastifyInstance, { kit }: RunDeps): void {
  app.post(`${WORKER_PATH}/jobs/:id/numbers`, needs('worker'), async (request, reply) => {
    const body = await kit.readBody<OutputNumbers & { readonly lease_id: string }>(request, 'NumberRequest')
    const lease = { jobId: jobIdOf(request), leaseId: body.lease_id }
    const first = await kit.gateway.runs.reserveOutputNumbers(kit.workerOf(request), lease, body)
    return sendJson(reply, 200, { first })
  })
}

/** Partner models for nodes of jobs that are held. */
interface ModelDeps {
  readonly kit: WorkerKit
  readonly maxModelBytes: number
  /** How long a connection may be silent while its call runs. */
  readonly holdMs: number
}

interface CallBody {
  readonly lease_id: string
  readonly model: string
  readonly input: string
  readonly images: readonly string[]
  readonly key: string
}

export function runNodeModel(app: FastifyInstance, { kit, maxModelBytes, holdMs }: ModelDeps): void {
  app.post(`${WORKER_PATH}/jobs/:id/models`, needs('worker'), async (request, reply) => {
    const body = await kit.readBody<CallBody>(request, 'NodeModelCall', maxModelBytes)
    // Proxies and kernels may drop a silent connection; we do not while its call may still end well.
    request.raw.socket.setTimeout(holdMs)
    const { model, input, key } = body
    const call = {
      model,
      input,
      key,
      images: body.images.map((image) => Uint8Array.from(Buffer.from(image, 'base64'))),
    }
    const lease = { jobId: jobIdOf(request), leaseId: body.lease_id }
    const options = { signal: untilGone(request, reply) }
    const answer = await kit.gateway.runModel(kit.workerOf(request), lease, call, options)
    return sendJson(reply, 200, {
      output: stringifyLosslessJson(answer.output),
      images: answer.images.map((image) => Buffer.from(image).toString('base64')),
    })
  })
}
