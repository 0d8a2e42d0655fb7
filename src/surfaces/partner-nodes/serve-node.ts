/**
 * Answers a node: with the result of its call, or with what the provider says about its task. Nothing is written before the end is
 * known; a large result streams from where it is kept, a provider's file streams through.
 */

import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type FormPart, writeMultipart } from '../../../lib/outbound/write-multipart.ts'
import { ServiceError } from '../../domain/errors.ts'
import type { Json, JsonRecord } from '../../domain/models/catalog/model.ts'
import {
  isCall,
  type PartnerBody,
  type PartnerCall,
  type PartnerCaller,
  type PartnerQuestion,
} from '../../domain/models/partner/partner-nodes.ts'
import type { FoundRoute } from '../../domain/models/partner/partner-route.ts'
import { RouterError } from '../../domain/models/router-error.ts'
import { claimOf } from '../kit/bodies/body-memory.ts'
import { FormReader } from '../kit/bodies/form-reader.ts'
import { freeBytes } from '../kit/bodies/gather-body.ts'
import { readBodyBytes } from '../kit/bodies/json-body.ts'
import {
  FORM_AROUND_MAX_BYTES,
  PART_HEAD_MAX_BYTES,
  readBoundary,
  readPartHead,
  toFormRefusal,
} from '../kit/bodies/multipart.ts'
import { keepUntilAnswered } from '../kit/connections/raw-connections.ts'
import { serviceAddressOf } from '../kit/guards/routes.ts'
import { mustBeResult, parseModelInput, repeated } from '../kit/model-calls.ts'
import { findRepeated, readParameters, readQuery } from '../kit/request.ts'
import type { PartnerParts } from '../kit/surface-parts.ts'

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

/**
 * The body of a node's request, and what of it decides model and price. Of JSON the bytes go on as they came, with every digit of
 * a seed: no name is in it twice, so every reader finds the same in it. A form is written anew from what was read of it, because
 * readers of forms differ in far more: names given twice, encodings, what stands around the parts.
 */
interface ReadOptions {
  readonly maxBytes: number
  readonly isForm: boolean
}

// 100 MiB over a slow line; a sender that drips is cut off all the same.
const BODY_MS = 600_000
const MAX_PARTS = 200
const MAX_FIELD_BYTES = 1024 * 1024
const CONTENT_TYPE = /^content-type:[ \t]*(\S[^\r\n]*)$/im

/** Throws ServiceError. */
async function readNodeBody(request: IncomingMessage, { maxBytes, isForm }: ReadOptions): Promise<PartnerBody> {
  const boundary = isForm ? readBoundary(request.headers['content-type'] ?? '') : null
  const bytes = await readBodyBytes(request, { maxBytes, deadlineMs: BODY_MS })
  if (boundary === null)
    return { bytes, contentType: 'application/json', fields: await parseModelInput(request, bytes), divider: null }
  const parts = await readForm(bytes, boundary)
  const form = writeMultipart(parts)
  const written = Buffer.concat(await Array.fromAsync(form.body))
  freeBytes(bytes)
  return { bytes: written, contentType: form.headers['content-type'], fields: toFields(parts), divider: form.boundary }
}

async function readForm(bytes: Buffer, boundary: string): Promise<FormPart[]> {
  const reader = new FormReader([bytes].values() as unknown as AsyncIterator<Buffer>, boundary)
  const parts: FormPart[] = []
  try {
    await reader.skipPreamble(FORM_AROUND_MAX_BYTES)
    for (;;) {
      const head = await reader.nextHead(PART_HEAD_MAX_BYTES)
      if (head === null) return parts
      if (parts.length >= MAX_PARTS)
        throw new ServiceError('payload_too_large', `the form has more than ${MAX_PARTS} parts`)
      const { name, fileName } = readPartHead(head)
      const contentType = CONTENT_TYPE.exec(head)?.[1]
      const content = await reader.readBody(fileName === null ? MAX_FIELD_BYTES : bytes.length)
      parts.push(
        fileName === null ? toText(name, content, contentType) : toFile(name, content, { fileName, contentType }),
      )
    }
  } catch (error) {
    throw toFormRefusal(error)
  }
}

/** What a text says is read as UTF-8, whatever its head says of it. */
function toText(name: string, content: Buffer, contentType?: string): FormPart {
  const isTyped = contentType !== undefined && !/^text\//i.test(contentType)
  return { name, value: content.toString(), ...(isTyped && { contentType }) }
}

function toFile(
  name: string,
  content: Buffer,
  head: { readonly fileName: string; readonly contentType?: string },
): FormPart {
  const { fileName: filename, contentType = 'application/octet-stream' } = head
  return { name, filename, contentType, sizeBytes: content.length, read: () => [content] }
}

/** Files may share a name, and texts one that ends like a list's; each file counts as an object, which no price can read. */
function toFields(parts: readonly FormPart[]): JsonRecord | RouterError {
  const byName = Map.groupBy(parts, ({ name }) => name)
  const fields: [string, Json][] = []
  for (const [name, same] of byName) {
    const texts = same.filter((part) => 'value' in part)
    const isList = name.endsWith('[]') || texts.length === 0
    if (same.length > 1 && !(isList && (texts.length === 0 || texts.length === same.length)))
      return repeated(['body', name])
    const values = same.map((part) => ('value' in part ? part.value : { file_name: part.filename }))
    fields.push([name, values.length === 1 ? values[0] : values])
  }
  return Object.fromEntries(fields)
}
