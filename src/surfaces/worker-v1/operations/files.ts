/** Bytes: the inputs of jobs that are held, and what their runs made. */

import { PassThrough, type Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { settlesWithin } from '../../../../lib/waiting/sleep.ts'
import type { ByteRange } from '../../../domain/assets/blob-store.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { ProvenPiece } from '../../../domain/workers/worker-files.ts'
import { DEFECT_MESSAGE } from '../../kit/answer-errors.ts'
import { readRange } from '../../kit/content/send-content.ts'
import { needs } from '../../kit/guards/routes.ts'
import { readQuery, sendJson, untilGone } from '../../kit/request.ts'
import { hashOf, jobIdOf, leaseOf, WORKER_PATH, type WorkerKit } from '../worker-operation.ts'

interface FileDeps {
  readonly kit: WorkerKit
}

interface PieceFields {
  readonly hash: string
  readonly size_bytes: number
  readonly receipt: string
}

interface OfferBody extends Omit<PieceFields, 'receipt'> {
  readonly lease_id: string
  readonly pieces?: readonly PieceFields[]
}

interface Content {
  readonly sizeBytes: number
  open(range?: ByteRange): Promise<Readable>
}

/** All of it, or the part that the request asks for. */
async function sendBytes(
  request: FastifyRequest,
  reply: FastifyReply,
  { sizeBytes, open }: Content,
): Promise<FastifyReply> {
  const range = readRange(request.headers.range, sizeBytes)
  if (range.kind === 'unsatisfiable') {
    reply.header('content-range', `bytes */${sizeBytes}`)
    throw new ServiceError('range_not_satisfiable', `the range is outside of these ${sizeBytes} bytes`)
  }
  const span = range.kind === 'part' ? range.span : undefined
  const body = request.method === 'HEAD' ? undefined : await open(span)
  const length = span === undefined ? sizeBytes : span.end - span.start + 1
  reply.headers({
    'content-type': 'application/octet-stream',
    'content-length': String(length),
    'accept-ranges': 'bytes',
    'cache-control': 'no-store',
  })
  if (span !== undefined) reply.header('content-range', `bytes ${span.start}-${span.end}/${sizeBytes}`)
  return reply.code(span === undefined ? 200 : 206).send(body)
}

export function readInput(app: FastifyInstance, { kit }: FileDeps): void {
  app.get(`${WORKER_PATH}/jobs/:id/inputs/:hash`, needs('worker'), async (request, reply) => {
    const content = await kit.gateway.files.openInput(kit.workerOf(request), leaseOf(request), hashOf(request))
    return sendBytes(request, reply, content)
  })
}

/** A release that this machine is to serve: what it is made from. */
export function readRelease(app: FastifyInstance, { kit }: FileDeps): void {
  app.get(`${WORKER_PATH}/releases/:id`, needs('worker'), async (request, reply) => {
    const target = (readQuery(request.raw.url ?? '') ?? []).find(([name]) => name === 'target')?.[1] ?? ''
    const { id: releaseId } = request.params as { readonly id: string }
    const wanted = { releaseId, target }
    return sendJson(reply, 200, await kit.gateway.releases.find(kit.workerOf(request), kit.instanceOf(request), wanted))
  })
}

/** Asked before the folder of a release is removed. */
export function readReleaseUse(app: FastifyInstance, { kit }: FileDeps): void {
  app.get(`${WORKER_PATH}/releases/:id/use`, needs('worker'), async (request, reply) => {
    const { id } = request.params as { readonly id: string }
    return sendJson(reply, 200, { used: await kit.gateway.releases.isUsed(kit.workerOf(request), id) })
  })
}

export function readReleaseBlob(app: FastifyInstance, { kit }: FileDeps): void {
  app.get(`${WORKER_PATH}/releases/:id/blobs/:blobId`, needs('worker'), async (request, reply) => {
    const { id: releaseId, blobId } = request.params as { readonly id: string; readonly blobId: string }
    const wanted = { releaseId, blobId }
    const content = await kit.gateway.releases.openBlob(kit.workerOf(request), kit.instanceOf(request), wanted)
    return sendBytes(request, reply, content)
  })
}

export function offerBlob(app: FastifyInstance, { kit }: FileDeps): void {
  app.post(`${WORKER_PATH}/jobs/:id/blobs`, needs('worker'), async (request, reply) => {
    const body = await kit.readBody<OfferBody>(request, 'BlobOffer')
    const lease = { jobId: jobIdOf(request), leaseId: body.lease_id }
    const whole = { hash: body.hash, sizeBytes: body.size_bytes }
    const worker = kit.workerOf(request)
    const { files } = kit.gateway
    if (body.pieces === undefined) {
      const receipt = await files.offer(worker, lease, whole)
      return sendJson(reply, 200, receipt === null ? { state: 'wanted' } : { state: 'stored', receipt })
    }
    const parts = { whole, pieces: body.pieces.map(toPiece), signal: untilGone(request, reply) }
    const joined = files.join(worker, lease, parts).then(({ receipt }) => ({ state: 'stored', receipt }))
    return answerSlowly(reply, joined)
  })
}

function toPiece({ hash, size_bytes: sizeBytes, receipt }: PieceFields): ProvenPiece {
  return { hash, sizeBytes, receipt }
}

export function putBlob(app: FastifyInstance, { kit }: FileDeps): void {
  app.put(`${WORKER_PATH}/jobs/:id/blobs/:hash`, needs('worker'), async (request, reply) => {
    const upload = { hash: hashOf(request), source: request.raw, signal: untilGone(request, reply) }
    const stored = await kit.gateway.files.store(kit.workerOf(request), leaseOf(request), upload)
    return sendJson(reply, 200, { hash: stored.hash, size_bytes: stored.sizeBytes, receipt: stored.receipt })
  })
}

// An answer that may take minutes. Whatever stands between a worker and a node may cut a silent connection, so blanks, which mean
// nothing before JSON, are sent while the work lasts. A refusal that comes after the first blank cannot be a status any more: it
// is said in the answer itself.

const QUIET_MS = 10_000

/** Rejects as the work does while nothing has been sent. `quietMs`: for tests. */
export async function answerSlowly(
  reply: FastifyReply,
  work: Promise<object>,
  { quietMs = QUIET_MS } = {},
): Promise<FastifyReply> {
  if (await settlesWithin(work, quietMs)) return sendJson(reply, 200, await work)
  const body = new PassThrough()
  body.write(' ')
  const timer = setInterval(() => body.write(' '), quietMs)
  body.once('close', () => clearInterval(timer))
  void work
    .catch((error: unknown) => ({ state: 'failed', error: toFailure(error) }))
    .then((answer) => {
      clearInterval(timer)
      body.end(JSON.stringify(answer))
    })
  return reply.code(200).header('content-type', 'application/json').send(body)
}

function toFailure(error: unknown): { readonly type: string; readonly message: string } {
  if (error instanceof ServiceError) return { type: error.refusal, message: error.message }
  return { type: 'internal_error', message: DEFECT_MESSAGE }
}
