/** What the operations of this surface share: who asks, how a body is read, and how a deployment is shown. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ReleasedDeployment } from '../../domain/deployments/released/released-deployment.ts'
import { holdsCompute, servingPool } from '../../domain/deployments/released/released-deployment.ts'
import type { Deployer } from '../../domain/deployments/released/released-deployments.ts'
import { ServiceError } from '../../domain/errors.ts'
import { readJsonObject } from '../kit/bodies/json-body.ts'
import type { Contract } from '../kit/contracts/contract.ts'
import { toDeploymentPrefix } from '../kit/guards/addresses.ts'
import { serviceAddressOf } from '../kit/guards/routes.ts'
import { sendJson } from '../kit/request.ts'
import type { SurfaceParts } from '../kit/surface-parts.ts'
import { type Serving, toDeploymentView } from './deployment-view.ts'

export interface DeployDeps {
  readonly parts: SurfaceParts
  readonly spec: Contract
  readonly deployerOf: (request: FastifyRequest) => Deployer
}

/** Bodies of this surface are a few hundred bytes. */
const MAX_BODY_BYTES = 65_536

export async function readBody<Body>(request: FastifyRequest, schema: string, { spec }: DeployDeps): Promise<Body> {
  const body = JSON.parse(JSON.stringify(await readJsonObject(request, { maxBytes: MAX_BODY_BYTES }))) as unknown
  const problem = spec.check(schema, body, 'body')
  if (problem !== null) throw new ServiceError('invalid_request', problem.replace(/^body\./, ''))
  return body as Body
}

/** One deployment with how it serves now. */
export async function sendDeployment(
  { request, reply, status = 200 }: { request: FastifyRequest; reply: FastifyReply; status?: number },
  deployment: ReleasedDeployment,
  { parts }: DeployDeps,
  more: object = {},
): Promise<FastifyReply> {
  const view = await showDeployment(request, deployment, parts)
  return sendJson(reply, status, { ...view, ...more })
}

export async function showDeployment(request: FastifyRequest, deployment: ReleasedDeployment, parts: SurfaceParts) {
  const serving = holdsCompute(deployment) ? await readServing(deployment, parts) : null
  return toDeploymentView(deployment, { endpointUrl: toEndpointUrl(request, deployment, parts), serving })
}

async function readServing(deployment: ReleasedDeployment, { deploy, clock }: SurfaceParts): Promise<Serving> {
  const pool = servingPool(deployment)
  const [load] = await deploy.countPools([pool])
  const engines = deploy.engines(pool)
  const ready = engines.filter(({ state }) => state === 'ready')
  return {
    ready: ready.length,
    busy: ready.filter(({ running }) => running > 0).length,
    starting: engines.filter(({ state, startedAt }) => state === 'starting' && startedAt !== null).length,
    queued: load?.queued ?? 0,
    at: clock.now(),
  }
}

/** By host where the service has a domain, as the official command line needs it; by path otherwise. */
function toEndpointUrl(request: FastifyRequest, { id }: ReleasedDeployment, { deploy }: SurfaceParts): string {
  if (deploy.domain !== null) return `https://${id}.run.${deploy.domain}`
  const { origin, mountPrefix } = serviceAddressOf(request)
  return origin + mountPrefix + toDeploymentPrefix(id)
}
