/** The account's own keys. The text of a key is shown only in the answer that made it. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { JsonValue } from '../../../../lib/json/lossless-json.ts'
import type { ApiKey } from '../../../domain/accounts/keys/api-key.ts'
import type { OwnKeys } from '../../../domain/accounts/keys/own-keys.ts'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import { readJsonObject } from '../../kit/bodies/json-body.ts'
import { needs } from '../../kit/guards/routes.ts'
import { idOf, readParameters, sendJson } from '../../kit/request.ts'
import { CONSOLE_API, type ConsoleDeps } from '../console-operation.ts'

const MAX_BODY_BYTES = 16_384
const MAX_TEXTS = { scopes: 20, endpoints: 50 }
const MAX_OVERLAP_SECONDS = 2_592_000
const PATH = `${CONSOLE_API}/keys`

export function listKeys(app: FastifyInstance, { callerOf, console: parts }: ConsoleDeps): void {
  app.get(PATH, needs('keys:write'), async (request, reply) => {
    const { accountId, keyId } = callerOf(request)
    readParameters(request.raw.url ?? '', [])
    const keys = await mustHaveKeys(parts.keys).list(accountId)
    return sendJson(reply, 200, { keys: keys.map((key) => toKeyView(key, keyId)) })
  })
}

export function createKey(app: FastifyInstance, { callerOf, console: parts }: ConsoleDeps): void {
  app.post(PATH, needs('keys:write'), async (request, reply) => {
    const [caller, keys] = [callerOf(request), mustHaveKeys(parts.keys)]
    const body = await readBody(request, ['name', 'scopes', 'endpoints', 'expires_at'])
    const [scopes, endpoints] = [readTexts(body, 'scopes'), readTexts(body, 'endpoints')]
    const wish = { name: readName(body), scopes, endpoints, expiresAt: readExpiry(body) }
    const { key, text } = await keys.create(caller, wish)
    return sendJson(reply, 201, { key: toKeyView(key, caller.keyId), secret: text })
  })
}

/** A new secret under the same id; the old one counts for `overlap_seconds` more. */
export function rotateKey(app: FastifyInstance, { callerOf, console: parts }: ConsoleDeps): void {
  app.post(`${PATH}/:id/rotate`, needs('keys:write'), async (request, reply) => {
    const [caller, keys] = [callerOf(request), mustHaveKeys(parts.keys)]
    const seconds = Number((await readBody(request, ['overlap_seconds']))['overlap_seconds'] ?? 0)
    if (!Number.isInteger(seconds) || seconds < 0 || seconds > MAX_OVERLAP_SECONDS)
      throw invalidField('overlap_seconds', `must be an integer from 0 to ${MAX_OVERLAP_SECONDS}`)
    const { key, text } = await keys.rotate(caller, idOf(request), { overlapMs: seconds * 1000 })
    return sendJson(reply, 200, { key: toKeyView(key, caller.keyId), secret: text })
  })
}

/** Its pages and streams end within a second. */
export function revokeKey(app: FastifyInstance, { callerOf, console: parts }: ConsoleDeps): void {
  app.delete(`${PATH}/:id`, needs('keys:write'), async (request, reply) => {
    await mustHaveKeys(parts.keys).revoke(callerOf(request), idOf(request))
    return reply.code(204).send()
  })
}

function mustHaveKeys(keys: OwnKeys | null): OwnKeys {
  if (keys === null) throw new ServiceError('not_found', 'this service has one account and no keys')
  return keys
}

type Body = Readonly<Record<string, JsonValue>>

async function readBody(request: FastifyRequest, names: readonly string[]): Promise<Body> {
  const body = await readJsonObject(request, { maxBytes: MAX_BODY_BYTES })
  const unknown = Object.keys(body).find((name) => !names.includes(name))
  if (unknown !== undefined) throw invalidField('body', `may have ${names.join(', ')} and nothing else`)
  return body as Body
}

function readName({ name = '' }: Body): string {
  if (typeof name !== 'string') throw invalidField('name', 'must be a text')
  return name
}

function readTexts(body: Body, name: 'scopes' | 'endpoints'): string[] | null {
  const texts = body[name] ?? null
  if (texts === null) return null
  if (Array.isArray(texts) && texts.length <= MAX_TEXTS[name] && texts.every((text) => typeof text === 'string'))
    return texts as string[]
  throw invalidField(name, `must be a list of at most ${MAX_TEXTS[name]} texts, or null for everything`)
}

function readExpiry({ expires_at: text = null }: Body): Date | null {
  if (text === null) return null
  const time = typeof text === 'string' && text.length <= 40 ? new Date(text) : new Date(Number.NaN)
  if (Number.isNaN(time.getTime())) throw invalidField('expires_at', 'must be a time such as 2026-01-31T12:00:00Z')
  return time
}

function toKeyView(key: ApiKey, currentId: string | null) {
  const toText = (date: Date | null) => date?.toISOString() ?? null
  return {
    id: key.id,
    name: key.name,
    scopes: key.scopes,
    endpoints: key.endpoints,
    created_at: key.createdAt.toISOString(),
    expires_at: toText(key.expiresAt),
    last_used_at: toText(key.lastUsedAt),
    revoked_at: toText(key.revokedAt),
    previous_until: toText(key.previousUntil),
    is_current: key.id === currentId,
  }
}
