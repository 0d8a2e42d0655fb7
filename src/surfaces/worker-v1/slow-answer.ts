/**
 * An answer that may take minutes. Whatever stands between a worker and a node may cut a silent connection, so blanks, which mean
 * nothing before JSON, are sent while the work lasts. A refusal that comes after the first blank cannot be a status any more: it
 * is said in the answer itself.
 */
import { PassThrough } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { settlesWithin } from '../../../lib/waiting/sleep.ts'
import { ServiceError } from '../../domain/errors.ts'
import { DEFECT_MESSAGE } from '../kit/answer-errors.ts'
import { sendJson } from '../kit/send-json.ts'

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
