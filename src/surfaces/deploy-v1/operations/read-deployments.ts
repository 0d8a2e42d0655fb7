/** What can be read of deployments on releases, and of the machines that they run on. */
import type { FastifyInstance } from 'fastify'
import {
  DEPLOYMENT_STATUSES,
  type DeploymentStatus,
  servingPool,
} from '../../../domain/deployments/released/released-deployment.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { needs } from '../../kit/guards/routes.ts'
import { idOf, readNumber, readParameters, sendJson } from '../../kit/request.ts'
import { type DeployDeps, sendDeployment, showDeployment } from '../deploy-operation.ts'
import { toEventView, toRevisionView } from '../deployment-view.ts'

const DEPLOYMENTS = '/deploy/v1/deployments'
const MAX_PAGE = 1000
const READ = needs('deployments:read')

export function listReleasedDeployments(app: FastifyInstance, { parts, deployerOf }: DeployDeps): void {
  app.get(DEPLOYMENTS, READ, async (request, reply) => {
    const given = readParameters(request.raw.url ?? '', ['status', 'limit', 'after'])
    const limit = readNumber(given, 'limit', { fallback: 100, max: MAX_PAGE })
    const [status, after] = [readStatus(given.get('status')), readCursor(given.get('after'))]
    const found = await parts.deploy.released.list(deployerOf(request), { status, after, limit: limit + 1 })
    const page = found.slice(0, limit)
    const last = page.at(-1)
    const hasMore = found.length > limit && last !== undefined
    return sendJson(reply, 200, {
      deployments: await Promise.all(page.map((deployment) => showDeployment(request, deployment, parts))),
      nextCursor: hasMore ? `${last.createdAt.getTime()}.${last.id}` : null,
    })
  })
}

function readStatus(text: string | undefined): DeploymentStatus | null {
  if (text === undefined) return null
  const status = DEPLOYMENT_STATUSES.find((one) => one === text)
  if (status === undefined)
    throw new ServiceError('invalid_request', `status must be one of ${DEPLOYMENT_STATUSES.join(', ')}`)
  return status
}

const CURSOR = /^(\d{1,15})\.(dep-[a-z0-9]{12})$/

function readCursor(text: string | undefined) {
  if (text === undefined) return null
  const match = CURSOR.exec(text)
  if (match === null) throw new ServiceError('invalid_cursor', 'after is no cursor of this list; begin without one')
  return { createdAt: new Date(Number(match[1])), id: match[2] ?? '' }
}

export function getReleasedDeployment(app: FastifyInstance, deps: DeployDeps): void {
  app.get(`${DEPLOYMENTS}/:id`, READ, async (request, reply) => {
    const found = await deps.parts.deploy.released.find(deps.deployerOf(request), idOf(request))
    return sendDeployment({ request, reply }, found, deps)
  })
}

export function listReleasedRevisions(app: FastifyInstance, { parts, deployerOf }: DeployDeps): void {
  app.get(`${DEPLOYMENTS}/:id/revisions`, READ, async (request, reply) => {
    const made = await parts.deploy.released.revisions(deployerOf(request), idOf(request))
    return sendJson(reply, 200, { items: made.map(toRevisionView) })
  })
}

export function listReleasedEvents(app: FastifyInstance, { parts, deployerOf }: DeployDeps): void {
  app.get(`${DEPLOYMENTS}/:id/events`, READ, async (request, reply) => {
    const id = idOf(request)
    const events = await parts.deploy.released.events(deployerOf(request), id)
    return sendJson(reply, 200, { deploymentId: id, events: events.map(toEventView) })
  })
}

export function getReleasedLogs(app: FastifyInstance, { parts, deployerOf }: DeployDeps): void {
  app.get(`${DEPLOYMENTS}/:id/logs`, READ, async (request, reply) => {
    const found = await parts.deploy.released.find(deployerOf(request), idOf(request))
    const log = parts.deploy.logOf(servingPool(found))
    return sendJson(reply, 200, {
      deploymentId: found.id,
      comfyuiLog: log?.text ?? '',
      capturedAt: log?.at.toISOString() ?? null,
    })
  })
}

// The start of a ComfyUI process with its packs, as it was measured; what is fetched first comes on top.
const START_SECONDS = { low: 5, high: 60 } as const

export function estimateDeployment(app: FastifyInstance, { parts, deployerOf }: DeployDeps): void {
  app.get('/deploy/v1/deploy-estimate', READ, async (request, reply) => {
    const names = ['releaseId', 'gpuClass', 'region']
    const given = readParameters(request.raw.url ?? '', names)
    const missing = names.find((name) => !given.has(name) || given.get(name) === '')
    if (missing !== undefined) throw new ServiceError('invalid_request', `${missing} is missing`)
    const [releaseId = '', gpuClass = ''] = names.map((name) => given.get(name))
    const release = await parts.deploy.released.release(deployerOf(request), releaseId, gpuClass)
    const bytes = release.sizeBytes ?? 0
    return sendJson(reply, 200, {
      ...{ enabled: true, etaSecondsLow: START_SECONDS.low, etaSecondsHigh: START_SECONDS.high },
      // It was built here, so all of it is here.
      ...{ bytesToFetch: 0, bytesTotal: bytes, bytesHeld: bytes, atLeast: release.sizeBytes === null, measured: false },
    })
  })
}

export function listCompute(app: FastifyInstance, { parts, deployerOf }: DeployDeps): void {
  app.get('/deploy/v1/compute-catalog', READ, async (request, reply) => {
    const levels = readParameters(request.raw.url ?? '', ['levels']).get('levels')
    if (levels !== undefined && levels !== 'all') throw new ServiceError('invalid_request', 'levels must be all')
    parts.deploy.released.mustBeAllowed(deployerOf(request))
    return sendJson(reply, 200, { regions: await parts.deploy.listCompute() })
  })
}
