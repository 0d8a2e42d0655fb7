/** Links to the page of an endpoint: made, listed with what was used of them, revoked. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Clock } from '../../../../lib/clock.ts'
import type { JsonObject, JsonValue } from '../../../../lib/json/lossless-json.ts'
import { readUsd, writeUsd } from '../../../../lib/text/usd.ts'
import type { Shares, ShareUse } from '../../../domain/endpoints/shares/manage-shares.ts'
import { type Share, stateOf } from '../../../domain/endpoints/shares/share.ts'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import { readJsonObject } from '../../kit/bodies/json-body.ts'
import type { ContractCheck } from '../../kit/contracts/contract.ts'
import { needs } from '../../kit/guards/routes.ts'
import { sendJson } from '../../kit/request.ts'
import type { ContextOf } from '../jobs-operation.ts'
import { ENDPOINTS_PATH } from '../views/endpoint-view.ts'

export interface EndpointShareDeps {
  readonly contextOf: ContextOf
  readonly shares: Pick<Shares, 'create' | 'list' | 'revoke'>
  readonly check: ContractCheck
  readonly maxBodyBytes: number
  readonly clock: Clock
}

const SHARES_ROUTE = `${ENDPOINTS_PATH}/:name/shares`
const AT_A_TIME = 2
const NOTHING: ShareUse = { runs: 0, runsToday: 0, spentMicros: 0, inFlight: 0 }

function nameOf(request: FastifyRequest): string {
  return (request.params as { readonly name: string }).name
}

function createEndpointShare(app: FastifyInstance, deps: EndpointShareDeps): void {
  app.post(SHARES_ROUTE, needs('endpoints:write'), async (request, reply) => {
    const { accountId, endpoints, keyId, origin, mountPrefix } = deps.contextOf(request)
    const body = await readJsonObject(request, { maxBytes: deps.maxBodyBytes })
    const problem = deps.check('EndpointShareRequest', body, 'the request')
    if (problem !== null) throw new ServiceError('invalid_field', problem)
    const { version = null, runs_per_day: runsPerDay = null, spend_usd: spendUsd = null } = body
    const { share, token } = await deps.shares.create({
      ...{ accountId, endpoints, name: nameOf(request) },
      ...{ keyId, version: version === null ? null : String(version), note: (body['note'] ?? '') as string },
      limits: {
        runs: body['runs'] as number,
        runsPerDay: runsPerDay as number | null,
        spendMicros: spendUsd === null ? null : readUsd(spendUsd as string),
        inFlight: (body['at_a_time'] ?? AT_A_TIME) as number,
      },
      referrers: (body['referrers'] ?? []) as string[],
      expiresAt: readTime(body['expires_at']),
    })
    const url = `${origin}${mountPrefix}/share/${token}`
    const view = toShareView(share, NOTHING, deps.clock.now())
    const embed = share.referrers.length === 0 ? null : toEmbedCode(url, share)
    return sendJson(reply, 201, { ...view, url, embed })
  })
}

const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$/i

function readTime(value: JsonValue | undefined): Date {
  const text = String(value)
  const time = TIME.test(text) ? new Date(text) : null
  if (time !== null && !Number.isNaN(time.getTime())) return time
  throw invalidField('expires_at', 'must be a time such as 2030-01-31T12:00:00Z')
}

function listEndpointShares(app: FastifyInstance, deps: EndpointShareDeps): void {
  app.get(SHARES_ROUTE, needs('endpoints:read'), async (request, reply) => {
    const now = deps.clock.now()
    const found = await deps.shares.list(deps.contextOf(request), nameOf(request))
    return sendJson(reply, 200, { shares: found.map(({ share, use }) => toShareView(share, use, now)) })
  })
}

function revokeEndpointShare(app: FastifyInstance, deps: EndpointShareDeps): void {
  app.delete(`${SHARES_ROUTE}/:id`, needs('endpoints:write'), async (request, reply) => {
    const { id } = request.params as { readonly id: string }
    const { share, use } = await deps.shares.revoke(deps.contextOf(request), nameOf(request), id)
    return sendJson(reply, 200, toShareView(share, use, deps.clock.now()))
  })
}

function toShareView(share: Share, use: ShareUse, now: Date): JsonObject {
  const { id, name, version, note, limits, referrers, createdAt, createdBy, expiresAt, revokedAt } = share
  return {
    ...{ id, endpoint: name, version, note, state: stateOf(share, now) },
    ...{ runs: limits.runs, runs_per_day: limits.runsPerDay, at_a_time: limits.inFlight },
    spend_usd: limits.spendMicros === null ? null : writeUsd(limits.spendMicros),
    referrers: [...referrers],
    used: {
      ...{ runs: use.runs, runs_today: use.runsToday },
      ...{ spent_usd: writeUsd(use.spentMicros), running: use.inFlight },
    },
    ...{ created_at: createdAt.toISOString(), created_by: createdBy },
    ...{ expires_at: expiresAt.toISOString(), revoked_at: revokedAt?.toISOString() ?? null },
  }
}

/** The address has only letters that need no escape, and so has the name. */
function toEmbedCode(url: string, { name }: Share): string {
  return `<iframe src="${url}" title="${name}" width="100%" height="800" style="border:0" loading="lazy" allow="clipboard-write"></iframe>`
}

export const ENDPOINT_SHARE_OPERATIONS = [createEndpointShare, listEndpointShares, revokeEndpointShare]
