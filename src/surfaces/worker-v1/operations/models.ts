/** Partner models for nodes of jobs that are held. */
import type { FastifyInstance } from 'fastify'
import { stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import { needs } from '../../kit/guards/rights.ts'
import { sendJson } from '../../kit/send-json.ts'
import { jobIdOf, untilGone, WORKER_PATH, type WorkerKit } from '../worker-operation.ts'

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
