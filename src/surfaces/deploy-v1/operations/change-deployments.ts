/** What changes deployments on releases. Each answers with the deployment as it is then. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { DeployError } from '../../../domain/deployments/released/deploy-error.ts'
import type { ComputeConfig, ReleasedDeployment } from '../../../domain/deployments/released/released-deployment.ts'
import type { Deployer } from '../../../domain/deployments/released/released-deployments.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { needs } from '../../kit/guards/routes.ts'
import { idOf } from '../../kit/request.ts'
import { type DeployDeps, readBody, sendDeployment } from '../deploy-operation.ts'

const DEPLOYMENTS = '/deploy/v1/deployments'
const WRITE = needs('deployments:write')
const MAX_KEY_BYTES = 255

interface NewDeploymentBody {
  readonly releaseId: string
  readonly computeConfig: ComputeConfig
  readonly name?: string
}

export function createReleasedDeployment(app: FastifyInstance, deps: DeployDeps): void {
  app.post(DEPLOYMENTS, WRITE, async (request, reply) => {
    const idempotencyKey = readKey(request)
    const { releaseId, computeConfig, name = null } = await readBody<NewDeploymentBody>(request, 'NewDeployment', deps)
    const { released } = deps.parts.deploy
    const made = await released.create(deps.deployerOf(request), { ...computeConfig, releaseId, name, idempotencyKey })
    return sendDeployment({ request, reply, status: 201 }, made, deps)
  })
}

/** Longer ones than elsewhere are possible: it is whatever the client has computed. */
function readKey(request: FastifyRequest): string | null {
  const given = request.raw.headersDistinct['idempotency-key']
  if (given === undefined) return null
  const [key = '', ...others] = given
  if (others.length > 0 || key === '' || Buffer.byteLength(key) > MAX_KEY_BYTES)
    throw new ServiceError('invalid_request', `Idempotency-Key must come once, with 1 to ${MAX_KEY_BYTES} bytes`)
  return key
}

interface ChangeBody {
  readonly computeConfig?: ComputeConfig
  readonly name?: string
  readonly baseRevision?: number
  readonly releaseId?: string
  readonly fromDeploymentId?: string
}

export function changeReleasedDeployment(app: FastifyInstance, deps: DeployDeps): void {
  app.patch(`${DEPLOYMENTS}/:id`, WRITE, async (request, reply) => {
    const body = await readBody<ChangeBody>(request, 'DeploymentChange', deps)
    const changed = await change(deps.deployerOf(request), { id: idOf(request), body }, deps)
    return sendDeployment({ request, reply, status: statusOf(changed, body) }, changed, deps)
  })
}

/** 202: what was asked for waits. */
function statusOf({ pending }: ReleasedDeployment, { baseRevision }: Pick<ChangeBody, 'baseRevision'>): number {
  return baseRevision !== undefined && pending !== null ? 202 : 200
}

function change(
  who: Deployer,
  { id, body }: { readonly id: string; readonly body: ChangeBody },
  { parts: { deploy } }: DeployDeps,
): Promise<ReleasedDeployment> {
  const { computeConfig, name, baseRevision, releaseId, fromDeploymentId } = body
  const { released } = deploy
  const given = Object.keys(body).sort().join(' ')
  if (given === 'computeConfig' && computeConfig !== undefined) return released.scale(who, id, computeConfig)
  if (given === 'name' && name !== undefined) return released.rename(who, id, name)
  if (given === 'baseRevision releaseId' && baseRevision !== undefined && releaseId !== undefined)
    return released.move(who, id, { baseRevision, releaseId })
  if (given === 'baseRevision fromDeploymentId' && baseRevision !== undefined && fromDeploymentId !== undefined)
    return released.promote(who, id, { baseRevision, fromId: fromDeploymentId })
  throw new DeployError(
    'invalid_request',
    'give one change: computeConfig, name, baseRevision with releaseId, or baseRevision with fromDeploymentId',
  )
}

export function rollbackReleasedDeployment(app: FastifyInstance, deps: DeployDeps): void {
  app.post(`${DEPLOYMENTS}/:id/rollback`, WRITE, async (request, reply) => {
    const body = await readBody<{ baseRevision: number; toRevision?: number }>(request, 'Rollback', deps)
    const { baseRevision, toRevision = null } = body
    const { released } = deps.parts.deploy
    const changed = await released.rollback(deps.deployerOf(request), idOf(request), { baseRevision, toRevision })
    return sendDeployment({ request, reply, status: statusOf(changed, body) }, changed, deps)
  })
}

export function cancelReleasedUpdate(app: FastifyInstance, deps: DeployDeps): void {
  app.delete(`${DEPLOYMENTS}/:id/pending-update`, WRITE, async (request, reply) => {
    const { released } = deps.parts.deploy
    const { deployment, canceled } = await released.cancelUpdate(deps.deployerOf(request), idOf(request))
    const { releaseId, baseRevision, kind } = canceled
    return sendDeployment({ request, reply }, deployment, deps, { cancelledUpdate: { releaseId, baseRevision, kind } })
  })
}

export function startReleasedDeployment(app: FastifyInstance, deps: DeployDeps): void {
  app.post(`${DEPLOYMENTS}/:id/start`, WRITE, async (request, reply) => {
    const started = await deps.parts.deploy.released.start(deps.deployerOf(request), idOf(request))
    return sendDeployment({ request, reply }, started, deps)
  })
}

export function stopReleasedDeployment(app: FastifyInstance, deps: DeployDeps): void {
  app.post(`${DEPLOYMENTS}/:id/stop`, WRITE, async (request, reply) => {
    const stopped = await deps.parts.deploy.released.stop(deps.deployerOf(request), idOf(request))
    return sendDeployment({ request, reply }, stopped, deps)
  })
}

export function deleteReleasedDeployment(app: FastifyInstance, deps: DeployDeps): void {
  app.delete(`${DEPLOYMENTS}/:id`, WRITE, async (request, reply) => {
    const removed = await deps.parts.deploy.released.remove(deps.deployerOf(request), idOf(request))
    return sendDeployment({ request, reply }, removed, deps)
  })
}
