/**
 * Signing in to ComfyUI's editor. Its page sends no credential of its own, so the browser keeps a session as it does for the console. An
 * operator's token opens nothing here.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { SignIn } from '../../domain/accounts/sign-in.ts'
import { ServiceError } from '../../domain/errors.ts'
import { readBodyBytes } from '../kit/bodies/json-body.ts'
import type { Gate, ServiceAddress } from '../kit/guards/gate.ts'
import { serviceAddressOf } from '../kit/guards/guard-hooks.ts'
import { isLoopbackName } from '../kit/guards/host-guard.ts'
import { needs, PUBLIC_PAGE } from '../kit/guards/rights.ts'
import { peekSession, readEditorSession, writeSession } from '../kit/guards/session-cookie.ts'
import { renderSecondTry, renderSignIn, SIGN_IN_HEADERS } from './sign-in-page.ts'

interface SignInDeps {
  readonly gate: Gate
  readonly signIn: SignIn
}

const MAX_BODY_BYTES = 16_384
const CREDENTIAL_MAX_LENGTH = 12_000

export function registerSignIn(app: FastifyInstance, { gate, signIn }: SignInDeps): void {
  app.get('/sign-in', PUBLIC_PAGE, async (request, reply) => {
    if (!gate.hasCredentials) return toEditor(request, reply)
    const text = peekSession(request.raw, serviceAddressOf(request), 'account')
    const isSignedIn = text !== null && (await signIn.openAccount(text)) !== null
    return send(request, reply, { isSignedIn, refusal: null })
  })

  app.post('/sign-in', needs('public'), async (request, reply) => {
    try {
      const { role, session } = await signIn.begin(await readCredential(request), gate.callerAddressOf(request.raw))
      if (role !== 'account') throw new ServiceError('unauthorized', 'this token is for the console of operators')
      reply.header('Set-Cookie', writeSession(serviceAddressOf(request), 'account', session.text))
      return toEditor(request, reply)
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      return refuse(request, reply, error)
    }
  })

  app.post('/sign-out', needs('public'), async (request, reply) => {
    const address = serviceAddressOf(request)
    const text = readEditorSession(request.raw, address)
    if (text !== null) await signIn.end('account', text)
    return reply
      .header('Set-Cookie', writeSession(address, 'account', null))
      .redirect(`${address.mountPrefix}/sign-in`, 303)
  })
}

/**
 * Answers in place of the editor's page where its reader must sign in first; null: nothing stands in the way. A session that is in use
 * lives on.
 */
export async function answerStranger(
  request: FastifyRequest,
  reply: FastifyReply,
  { gate, signIn }: SignInDeps,
): Promise<FastifyReply | null> {
  if (!gate.hasCredentials) return null
  const address = serviceAddressOf(request)
  const text = peekSession(request.raw, address, 'account')
  const session = text === null ? null : await signIn.openAccount(text)
  if (session !== null) {
    const renewed = session.renew()
    if (renewed !== null) reply.header('Set-Cookie', writeSession(address, 'account', renewed.text))
    return null
  }
  if (request.headers['sec-fetch-site'] === 'cross-site') return reply.headers(SIGN_IN_HEADERS).send(renderSecondTry())
  return reply.header('Cache-Control', 'no-store').redirect(`${address.mountPrefix}/sign-in`, 302)
}

async function readCredential(request: FastifyRequest): Promise<string> {
  const bytes = await readBodyBytes(request.raw, { maxBytes: MAX_BODY_BYTES })
  const credential = new URLSearchParams(bytes.toString('utf8')).get('credential')?.trim() ?? ''
  if (credential === '' || credential.length > CREDENTIAL_MAX_LENGTH)
    throw new ServiceError('invalid_request', 'give the text of a key or token')
  return credential
}

/** Refusals that a person can do something about; their sentences are ours and hold nothing of what was typed. */
const STATUS: Readonly<Partial<Record<ServiceError['refusal'], number>>> = {
  unauthorized: 401,
  invalid_request: 400,
  payload_too_large: 413,
  rate_limited: 429,
}

function refuse(request: FastifyRequest, reply: FastifyReply, error: ServiceError): FastifyReply {
  const status = STATUS[error.refusal]
  if (status === undefined) throw error
  if (error.retryAfterSeconds !== null) reply.header('Retry-After', String(error.retryAfterSeconds))
  return send(request, reply.code(status), { isSignedIn: false, refusal: error.message })
}

function send(
  request: FastifyRequest,
  reply: FastifyReply,
  shown: { readonly isSignedIn: boolean; readonly refusal: string | null },
): FastifyReply {
  const isInsecure = isReadable(serviceAddressOf(request))
  return reply.headers(SIGN_IN_HEADERS).send(renderSignIn({ ...shown, isInsecure }))
}

function isReadable({ origin, host }: ServiceAddress): boolean {
  return origin.startsWith('http:') && !isLoopbackName(host.name)
}

function toEditor(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return reply.redirect(`${serviceAddressOf(request).mountPrefix}/`, 303)
}
