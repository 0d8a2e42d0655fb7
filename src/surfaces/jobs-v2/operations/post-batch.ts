/** Accepts many workflows. 201 means that all jobs which it names are durably recorded and queued. */
import { createHash } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import type { Turns, Work } from '../../../../lib/waiting/turns.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { readIdempotencyKey } from '../../../domain/idempotency/idempotency-key.ts'
import { BatchRefusedError, type SubmitBatch } from '../../../domain/jobs/batches/submit-batch.ts'
import { parseLosslessBody, readBodyBytes } from '../../kit/bodies/json-body.ts'
import type { ContractCheck } from '../../kit/contracts/contract.ts'
import { needs } from '../../kit/guards/rights.ts'
import { sendJson } from '../../kit/send-json.ts'
import { toComplaint } from '../jobs-errors.ts'
import type { ContextOf } from '../jobs-operation.ts'
import { type BatchLinks, toBatchView } from '../views/batch-view.ts'
import { API_PATH } from '../views/links.ts'
import { readBatchBody } from './batch-body.ts'
import { mustBeObject } from './submit-body.ts'

interface PostBatchDeps {
  readonly contextOf: ContextOf
  readonly submitBatch: SubmitBatch
  readonly check: ContractCheck
  readonly turns: Turns
  readonly maxBodyBytes: number
  readonly linkStyle: BatchLinks['style']
}

export function postBatch(app: FastifyInstance, deps: PostBatchDeps): void {
  const { contextOf, submitBatch, check, turns, maxBodyBytes, linkStyle } = deps
  app.post(`${API_PATH}/jobs/batch`, needs('jobs:write'), async (request, reply) => {
    const context = contextOf(request)
    const { accountId, keyId, pool } = context
    const idempotencyKey = readIdempotencyKey(request.raw.headersDistinct['idempotency-key'])
    const bytes = await readBodyBytes(request.raw, { maxBytes: maxBodyBytes })
    const digest = idempotencyKey === null ? '' : await turns.run(digestSteps(bytes, pool))
    const body = mustBeObject(await parseLosslessBody(request.raw, bytes))
    const { isWhole, items, changes } = readBatchBody(body, check)
    try {
      const asked = { accountId, keyId, pool, idempotencyKey, digest, isWhole, items, changes }
      const batch = await submitBatch(asked)
      return sendJson(reply, 201, toBatchView(batch, { base: context, style: linkStyle }))
    } catch (error) {
      throw error instanceof BatchRefusedError ? withItems(error) : error
    }
  })
}

// A piece takes a millisecond or so.
const PIECE_BYTES = 1024 * 1024

/** The same bytes at the address of another deployment are another request. */
function* digestSteps(bytes: Buffer, pool: string | null): Work<string> {
  const hash = createHash('sha256').update(`${pool ?? ''}\n`)
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    hash.update(bytes.subarray(at, at + PIECE_BYTES))
    yield
  }
  return hash.digest('base64url')
}

const MAX_TOLD = 100

function withItems({ message, items }: BatchRefusedError): ServiceError {
  const told = items.slice(0, MAX_TOLD).map((item) => ({ index: item.index, ...toComplaint(item) }))
  return new ServiceError('batch_refused', message, { details: { refused: items.length, items: told } })
}
