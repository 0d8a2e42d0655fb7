/** Partner models for nodes that run here, called by the service that was joined: this worker has no provider's key. */
import { type JsonValue, parseLosslessJson, stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import { toTraceHeaders } from '../../../lib/tracing/trace-context.ts'
import type { Tracer } from '../../../lib/tracing/tracer.ts'
import type { RunModel } from '../../domain/engine/model-port.ts'
import { ServiceError } from '../../domain/errors.ts'
import { outlastOutage } from '../../domain/outage.ts'
import type { GatewayClient } from './gateway-client.ts'
import type { HeldJobs } from './held-jobs.ts'

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
