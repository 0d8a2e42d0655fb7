/**
 * Deployments on releases, as the official command line calls them below `/deploy/v1`. The surface may be left out: deleting this folder
 * leaves a service without it.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Deployer } from '../../domain/deployments/released/released-deployments.ts'
import { openContract } from '../kit/contracts/contract.ts'
import { mustNameNoDeployment } from '../kit/guards/addresses.ts'
import { createRouteGuard, needs, sendError, serviceAddressOf } from '../kit/guards/routes.ts'
import { sendJson } from '../kit/request.ts'
import { mount, type Surface } from '../kit/surface.ts'
import type { SurfaceParts } from '../kit/surface-parts.ts'
import { createAnswerDeployError } from './deploy-errors.ts'
import type { DeployDeps } from './deploy-operation.ts'
import * as changing from './operations/change-deployments.ts'
import * as reading from './operations/read-deployments.ts'

const SOURCE = new URL('../../../spec/deploy-v1.openapi.json', import.meta.url)
const DEPLOY_PATH = '/deploy/v1'

export function createSurface(parts: SurfaceParts): Surface {
  const { gate, log } = parts
  const { mountPrefix, hasCredentials } = gate
  const answerError = createAnswerDeployError(log)
  const requestSchemas = ['NewDeployment', 'DeploymentChange', 'Rollback']
  const spec = openContract({ source: SOURCE, requestSchemas, needsCredentials: hasCredentials })
  const guard = createRouteGuard<Deployer>({
    async account(request) {
      const caller = await gate.authenticate(request.raw, 'api_key')
      mustNameNoDeployment(serviceAddressOf(request))
      const { accountId, keyId } = caller
      return { ...caller, by: keyId === null ? accountId : `key ${keyId}` }
    },
  })
  const deps: DeployDeps = { parts, spec, deployerOf: guard.knownOf }
  const isOurs = (path: string) => path.startsWith(`${mountPrefix}${DEPLOY_PATH}/`)
  return {
    name: 'deploy-v1',
    register(app) {
      app.setErrorHandler((error, request, reply) => sendError(reply, answerError(error, request.id)))
      mount(app, mountPrefix, (mounted) => {
        guard.protect(mounted)
        for (const register of [...Object.values(reading), ...Object.values(changing)]) register(mounted, deps)
        getDeployOpenapi(mounted, deps)
      })
    },
    reference: {
      path: '/docs/deploy',
      title: 'Deployments on releases',
      document: spec.shown,
      examplePath: `${DEPLOY_PATH}/deployments`,
      client: 'atelier/client/deployments',
    },
    allowedMethods: (path) => (isOurs(path) ? spec.methodsOf(path.slice(mountPrefix.length)) : []),
    answerErrorFor: (path) => (isOurs(path) ? answerError : null),
  }
}

/** The contract, with the address at which this caller reached us. */
function getDeployOpenapi(app: FastifyInstance, { spec }: Pick<DeployDeps, 'spec'>): void {
  app.get(`${DEPLOY_PATH}/openapi.json`, needs('public'), (request: FastifyRequest, reply) => {
    const { origin, mountPrefix } = serviceAddressOf(request)
    return sendJson(reply, 200, spec.textFor(origin + mountPrefix))
  })
}
