/**
 * The gate as hooks of the framework, for every route and for addresses that have none: answer headers first, so that each
 * refusal carries them too, then the guards, then OPTIONS. Surfaces that must know the caller add `authenticate`.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ServiceError } from '../../../domain/errors.ts'
import { dropRestOf, keepOpenFor } from '../bodies/unread-body.ts'
import { wrongMethod } from '../contracts/path-methods.ts'
import { markRoute } from '../request-identity.ts'
import { pathOf } from '../request-url.ts'
import type { AnswerError, ErrorAnswer } from '../surface.ts'
import type { Gate, ServiceAddress } from './gate.ts'

interface GuardOptions {
  readonly gate: Gate
  /** The error envelope of the surface that the path belongs to. */
  readonly answerErrorFor: (path: string) => AnswerError
  readonly allowedMethods: (path: string) => readonly string[]
}

const ADDRESS = Symbol('address')
type Addressed = FastifyRequest & { [ADDRESS]?: ServiceAddress }

/** How this caller reached us; known once the guards have run. */
export function serviceAddressOf(request: FastifyRequest): ServiceAddress {
  const address = (request as Addressed)[ADDRESS]
  if (address === undefined) throw new Error('the guards have not run for this request')
  return address
}

export function guardRequests(app: FastifyInstance, options: GuardOptions): void {
  const { gate, answerErrorFor, allowedMethods } = options
  app.decorateRequest(ADDRESS, undefined)

  app.addHook('onRequest', (request, reply, done) => {
    setHeaders(reply, gate.answerHeaders(request.headers.origin, request.id))
    markRoute(request.raw, request.routeOptions.url ?? '')
    const { isPublicPage, answersOptions } = request.routeOptions.config as RouteConfig
    ;(request as Addressed)[ADDRESS] = isPublicPage === true ? gate.addressOf(request.raw) : gate.admit(request.raw)
    if (request.method !== 'OPTIONS' || (answersOptions === true && !isPreflight(request))) done()
    else answerOptions(request, reply)
  })

  // An answer that comes before the whole request was read must not cut the sender off in mid-sentence.
  app.addHook('onResponse', (request, _reply, done) => {
    dropRestOf(request.raw)
    done()
  })

  app.setErrorHandler((error, request, reply) =>
    sendError(reply, answerErrorFor(pathOf(request.raw.url ?? ''))(error, request.id)),
  )

  app.setNotFoundHandler((request, reply) => {
    const methods = allowedMethods(pathOf(request.raw.url ?? ''))
    if (methods.length > 0) reply.header('Allow', methods.join(', '))
    const error =
      methods.length > 0
        ? wrongMethod(request.method, methods)
        : new ServiceError('not_found', 'there is nothing under this address')
    return sendError(reply, answerErrorFor(pathOf(request.raw.url ?? ''))(error, request.id))
  })

  function answerOptions(request: FastifyRequest, reply: FastifyReply): void {
    const { origin } = request.headers
    if (isPreflight(request) && origin !== undefined && gate.cors.isAllowed(origin)) {
      setHeaders(reply, gate.cors.preflightHeaders(origin))
    } else {
      const methods = new Set([...allowedMethods(pathOf(request.raw.url ?? '')), 'OPTIONS'])
      reply.header('Allow', [...methods].join(', '))
    }
    reply.code(204).send()
  }
}

interface RouteConfig {
  readonly isPublicPage?: boolean
  /** The route says more of itself than which methods it has. */
  readonly answersOptions?: boolean
}

function isPreflight({ headers }: FastifyRequest): boolean {
  return headers['access-control-request-method'] !== undefined
}

export function sendError(reply: FastifyReply, { status, headers, body }: ErrorAnswer): FastifyReply {
  keepOpenFor(reply.request.raw, reply.raw)
  return reply.code(status).headers(headers).send(Buffer.from(body))
}

function setHeaders(reply: FastifyReply, headers: readonly string[]): void {
  for (let at = 0; at < headers.length; at += 2) reply.header(headers[at], headers[at + 1])
}
