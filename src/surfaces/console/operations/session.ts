/** Signing in and out, and what the page must know before it can draw anything: who is here and what this service offers. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { writeUsd } from '../../../../lib/text/usd.ts'
import type { Caller } from '../../../domain/accounts/caller.ts'
import type { OpenedSession, SessionRole } from '../../../domain/accounts/sessions.ts'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import { readJsonObject } from '../../kit/bodies/json-body.ts'
import { needs, serviceAddressOf } from '../../kit/guards/routes.ts'
import { readSession, writeSession } from '../../kit/guards/session-cookie.ts'
import { lenientQueryOf, sendJson } from '../../kit/request.ts'
import type { AccountStanding } from '../../kit/surface-parts.ts'
import { CONSOLE_API, type ConsoleDeps } from '../console-operation.ts'

const MAX_BODY_BYTES = 16_384
const CREDENTIAL_MAX_LENGTH = 12_000
const ROLES: readonly SessionRole[] = ['account', 'operator']

/** Answers 200 also to those who are not signed in: the page then shows the form. */
export function getSession(app: FastifyInstance, deps: ConsoleDeps): void {
  app.get(`${CONSOLE_API}/session`, needs('public'), async (request, reply) => sendSession(request, reply, deps))
}

export function createSession(app: FastifyInstance, deps: ConsoleDeps): void {
  app.post(`${CONSOLE_API}/session`, needs('public'), async (request, reply) => {
    const credential = await readCredentialField(request)
    const { role, session } = await deps.console.signIn.begin(credential, deps.gate.callerAddressOf(request.raw))
    reply.header('Set-Cookie', writeSession(serviceAddressOf(request), role, session.text))
    return sendJson(reply, 200, { role, expires_at: session.expiresAt.toISOString() })
  })
}

/** `?everywhere=1` ends all sessions that began with the same credential. */
export function endSession(app: FastifyInstance, deps: ConsoleDeps): void {
  app.delete(`${CONSOLE_API}/session`, needs('public'), async (request, reply) => {
    const address = serviceAddressOf(request)
    const isEverywhere = lenientQueryOf(request.raw.url ?? '').get('everywhere') === '1'
    for (const role of ROLES) {
      const text = readSession(request.raw, address, role)
      if (text === null) continue
      if (isEverywhere) await deps.console.signIn.endAll(role, text)
      else await deps.console.signIn.end(role, text)
    }
    reply.header(
      'Set-Cookie',
      ROLES.map((role) => writeSession(address, role, null)),
    )
    return reply.code(204).send()
  })
}

async function readCredentialField(request: FastifyRequest): Promise<string> {
  const body = await readJsonObject(request, { maxBytes: MAX_BODY_BYTES })
  const { credential } = body
  if (typeof credential !== 'string' || credential === '' || credential.length > CREDENTIAL_MAX_LENGTH)
    throw invalidField('credential', 'must be the text of a key or token')
  return credential
}

async function sendSession(request: FastifyRequest, reply: FastifyReply, deps: ConsoleDeps): Promise<FastifyReply> {
  const { console: parts, gate } = deps
  const caller = await callerOrNull(request, deps)
  const operator = await openOperator(request, deps)
  await renew(request, reply, deps, operator)
  const isOperator = parts.hasAdmin && (operator !== null || (parts.isEveryoneOperator && caller !== null))
  return sendJson(reply, 200, {
    kind: parts.kind,
    version: deps.version,
    build: deps.files.current()?.id ?? null,
    now: deps.clock.now().toISOString(),
    needs_credential: gate.hasCredentials,
    signed_in: caller !== null,
    operator: isOperator,
    may_become_operator: parts.hasAdmin && !parts.isEveryoneOperator,
    account: caller === null ? null : toAccountView(await parts.standingOf(caller)),
    scopes: caller?.scopes == null ? null : [...caller.scopes],
    features: {
      models: parts.hasRouter,
      accounts: parts.kind !== 'local',
      environments: caller !== null && parts.mayBuild(caller.accountId),
      deployments: caller !== null && parts.mayDeploy(caller.accountId),
    },
  })
}

async function callerOrNull(request: FastifyRequest, { gate }: ConsoleDeps): Promise<Caller | null> {
  try {
    return await gate.authenticate(request.raw, 'bearer')
  } catch (error) {
    if (error instanceof ServiceError && (error.refusal === 'unauthorized' || error.refusal === 'forbidden'))
      return null
    throw error
  }
}

function openOperator(request: FastifyRequest, { console: parts }: ConsoleDeps): Promise<OpenedSession | null> | null {
  const text = readSession(request.raw, serviceAddressOf(request), 'operator')
  return text === null ? null : parts.signIn.openOperator(text)
}

/** A session lives on as long as its page asks for it; other requests do not write cookies. */
async function renew(
  request: FastifyRequest,
  reply: FastifyReply,
  { console: parts }: ConsoleDeps,
  operator: OpenedSession | null,
): Promise<void> {
  const address = serviceAddressOf(request)
  const text = readSession(request.raw, address, 'account')
  const account = text === null ? null : await parts.signIn.openAccount(text)
  const renewed = [
    ['account', account?.renew() ?? null],
    ['operator', operator?.renew() ?? null],
  ] as const
  const cookies = renewed.flatMap(([role, session]) =>
    session === null ? [] : writeSession(address, role, session.text),
  )
  if (cookies.length > 0) reply.header('Set-Cookie', cookies)
}

function toAccountView(standing: AccountStanding) {
  const { credit, jobPrice } = standing
  return {
    id: standing.id,
    name: standing.name,
    tier: standing.tier,
    running: standing.running,
    queued: standing.queued,
    max_running: standing.maxRunning,
    max_queued: standing.maxQueued,
    job_price:
      jobPrice === null
        ? null
        : {
            per_second_usd: writeUsd(jobPrice.perSecondMicros),
            minimum_usd: writeUsd(jobPrice.minimumMicros),
            hold_usd: writeUsd(jobPrice.holdMicros),
          },
    credit: credit === null ? null : { available_usd: writeUsd(credit.available), held_usd: writeUsd(credit.held) },
  }
}
