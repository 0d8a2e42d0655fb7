/**
 * Answers a node: with the result of its call, or with what the provider says about its task. Nothing is written before the end is
 * known; a large result streams from where it is kept, a provider's file streams through.
 */
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import {
  isCall,
  type PartnerCall,
  type PartnerCaller,
  type PartnerQuestion,
} from '../../domain/models/partner/partner-nodes.ts'
import type { FoundRoute } from '../../domain/models/partner/partner-route.ts'
import { RouterError } from '../../domain/models/router-error.ts'
import { claimOf } from '../kit/bodies/body-memory.ts'
import { keepUntilAnswered } from '../kit/connections/half-closed.ts'
import { serviceAddressOf } from '../kit/guards/guard-hooks.ts'
import { mustBeResult, repeated } from '../kit/model-calls.ts'
import type { PartnerParts } from '../kit/parts/partner-parts.ts'
import { findRepeated, readParameters, readQuery } from '../kit/request-url.ts'
import { readNodeBody } from './node-body.ts'

type ServeNode = (
  request: FastifyRequest,
  reply: FastifyReply,
  asked: { readonly caller: PartnerCaller; readonly found: FoundRoute },
) => Promise<FastifyReply>

export function createServeNode(parts: PartnerParts): ServeNode {
  const { nodes, blobs, maxBodyBytes, holdMs } = parts

  async function serveCall(
    request: FastifyRequest,
    reply: FastifyReply,
    call: Pick<PartnerCall, 'caller' | 'found' | 'query'>,
  ): Promise<FastifyReply> {
    const body = await readNodeBody(request.raw, { maxBytes: maxBodyBytes, isForm: call.found.route.isForm })
    // Proxies and kernels may drop a silent connection; we do not while its call may still end well.
    request.raw.socket.setTimeout(holdMs)
    keepUntilAnswered(request.raw.socket)
    const gone = untilGone(reply)
    const { origin, mountPrefix } = serviceAddressOf(request)
    const answer = await nodes.call({
      ...call,
      body,
      requestId: request.id,
      baseUrl: origin + mountPrefix,
      listener: { isConnected: () => !gone.aborted, left: gone },
      holdBody: () => claimOf(request.raw).hold(),
    })
    const result = mustBeResult(answer)
    const content =
      result.body.kind === 'inline'
        ? Readable.from([Buffer.from(result.body.bytes)])
        : await blobs.open(result.body.hash)
    await write(reply, { status: 200, contentType: result.contentType, sizeBytes: result.sizeBytes, content })
    // A caller that closed the connection does not read the answer, though the system still takes the bytes: the next equal request gets it.
    if (!request.raw.socket.readableEnded) answer.delivered()
    return reply
  }

  async function serveQuestion(
    request: FastifyRequest,
    reply: FastifyReply,
    question: Pick<PartnerQuestion, 'caller' | 'found' | 'query'>,
  ): Promise<FastifyReply> {
    const isPost = question.found.route.method === 'POST'
    const body = isPost ? await readNodeBody(request.raw, { maxBytes: maxBodyBytes, isForm: false }) : null
    const { status, contentType, body: content } = await nodes.ask({ ...question, body, signal: untilGone(reply) })
    if (Buffer.isBuffer(content)) return reply.code(status).header('content-type', contentType).send(content)
    await write(reply, { status, contentType, sizeBytes: null, content: Readable.from(content) })
    return reply
  }

  return async (request, reply, { caller, found }) => {
    const { route } = found
    const query = readQueryOf(request.raw.url ?? '', route.query)
    return isCall(found)
      ? serveCall(request, reply, { caller, found, query })
      : serveQuestion(request, reply, { caller, found: found as PartnerQuestion['found'], query })
  }
}

function readQueryOf(url: string, known: FoundRoute['route']['query']): Record<string, string> {
  const names = Object.keys(known)
  // Every reader has its own idea of which of two counts.
  const twice = findRepeated(readQuery(url) ?? [], names)
  if (twice !== null) throw repeated(['query', twice])
  const given = readParameters(url, names)
  return Object.fromEntries(
    Object.entries(known).map(([name, fallback]) => {
      const value = given.get(name) ?? fallback
      if (value === null) throw new RouterError('malformed', `the query must hold ${name}`)
      return [name, value]
    }),
  )
}

/** Aborted when the caller disconnects before the answer was written. */
function untilGone(reply: FastifyReply): AbortSignal {
  const gone = new AbortController()
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) gone.abort()
  })
  if (reply.raw.destroyed) gone.abort()
  return gone.signal
}

interface Written {
  readonly status: number
  readonly contentType: string
  readonly sizeBytes: number | null
  readonly content: Readable
}

/** Rejects when the answer did not reach the system's hands whole. */
async function write(reply: FastifyReply, { status, contentType, sizeBytes, content }: Written): Promise<void> {
  const common = reply.getHeaders()
  reply.hijack()
  if (reply.raw.destroyed) throw new RouterError('disconnected', 'the caller of this call has disconnected')
  for (const [name, value] of Object.entries(common)) if (value !== undefined) reply.raw.setHeader(name, value)
  reply.raw.setHeader('content-type', contentType)
  if (sizeBytes !== null) reply.raw.setHeader('content-length', sizeBytes)
  reply.raw.writeHead(status)
  await pipeline(content, reply.raw)
}
