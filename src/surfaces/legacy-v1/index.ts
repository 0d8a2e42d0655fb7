/**
 * The Legacy v1 API as one surface: every route under `/api/x` and bare `/x`, and the WebSocket. It may be left out: deleting
 * this folder leaves a service without it. Jobs, assets and accounts are those of the other surfaces; only the words differ.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { createUuidV7 } from '../../../lib/ids.ts'
import type { Caller } from '../../domain/accounts/caller.ts'
import {
  compileMethods,
  type MethodsOf,
  type PathMethods,
  refuseShadowedMethods,
} from '../kit/contracts/path-methods.ts'
import { mustNameNoDeployment } from '../kit/guards/deployment-address.ts'
import { sendError, serviceAddressOf } from '../kit/guards/guard-hooks.ts'
import { createRouteGuard } from '../kit/guards/rights.ts'
import type { SurfaceParts } from '../kit/parts/surface-parts.ts'
import { pathOf } from '../kit/request-url.ts'
import { mount, type Surface } from '../kit/surface.ts'
import { deprecationHeaders } from './deprecation.ts'
import { createAnnouncedFiles } from './files/announced-files.ts'
import { createAnswerError } from './legacy-errors.ts'
import { createApi, type OperationDeps } from './legacy-operation.ts'
import { registerRoutes } from './legacy-routes.ts'
import { isPromptSubmit } from './operations/prompts.ts'
import { loadContract } from './operations/server-info.ts'
import { createJobClients, toClientId } from './prompts/job-clients.ts'
import { createAnswerPromptError } from './prompts/prompt-errors.ts'
import { createExtraDataMemory } from './prompts/prompt-extra-data.ts'
import { createLogReaders } from './ws/log-news.ts'
import { openSockets } from './ws/open-sockets.ts'

export function createSurface(parts: SurfaceParts): Surface {
  const { gate, bus, clock } = parts
  const answerError = createAnswerError(parts.log)
  const answerPromptError = createAnswerPromptError(answerError)
  const features = toFeatures(parts)
  const setDeprecation = (request: FastifyRequest, reply: FastifyReply) =>
    reply.headers(deprecationHeaders(pathOf(request.raw.url ?? ''), gate.mountPrefix))
  const guard = createRouteGuard<Caller>({
    before(request, reply) {
      setDeprecation(request, reply)
      mustNameNoDeployment(serviceAddressOf(request))
    },
    account: (request) => gate.authenticate(request.raw, 'api_key'),
  })
  const announcedFiles = createAnnouncedFiles({ bus, countJobs: parts.jobs.countJobs })
  const deps: OperationDeps = {
    ...parts,
    jobClients: createJobClients({ lookUp: (accountId, jobId) => findClient(parts, accountId, jobId) }),
    extraData: createExtraDataMemory(),
    announcedFiles,
    features,
    logReaders: createLogReaders(),
    newPromptId: createUuidV7(() => clock.now().getTime()),
    callerOf: guard.knownOf,
    accountOf: (request) => guard.knownOf(request).accountId,
  }
  const { jobClients, logReaders } = deps
  const sockets = openSockets(parts, { answerError, jobClients, logReaders, features: () => features })
  let methodsOf: MethodsOf = () => []

  function register(app: FastifyInstance): void {
    app.setErrorHandler((error, request, reply) => {
      setDeprecation(request, reply)
      const answer = isPromptSubmit(request) ? answerPromptError : answerError
      return sendError(reply, answer(error, request.id))
    })
    guard.protect(app)
    const api = createApi(app)
    registerRoutes(api, deps)
    const paths = toPaths(api.routes)
    methodsOf = compileMethods(paths)
    refuseShadowedMethods(app, { paths, methodsOf }, 'any_scope')
  }

  const allowedMethods: MethodsOf = (path) =>
    path.startsWith(gate.mountPrefix) ? methodsOf(path.slice(gate.mountPrefix.length)) : []

  return {
    name: 'legacy-v1',
    register: (app) => mount(app, gate.mountPrefix, register),
    hotRoutes: [],
    reference: {
      path: '/docs/legacy-v1',
      title: 'Legacy v1 API',
      document: loadContract(parts).document,
      examplePath: '/api/features',
    },
    allowedMethods,
    answerErrorFor: (path) => (allowedMethods(path).length > 0 ? answerError : null),
    ...sockets,
    drain() {
      sockets.drain()
      announcedFiles[Symbol.dispose]()
    },
  }
}

/** From the registered routes, `METHOD /path/:parameter`, because the contract does not list the bare addresses. */
function toPaths(routes: readonly string[]): PathMethods[] {
  const paths = new Map<string, string[]>()
  for (const route of routes) {
    const [method, url] = route.split(' ')
    const template = url.replaceAll(/:(\w+)/g, '{$1}')
    paths.set(template, [...(paths.get(template) ?? []), method])
  }
  return [...paths].map(([template, methods]) => ({ template, methods }))
}

/** What the server can do, as reported over HTTP and the socket. */
function toFeatures({ limits }: SurfaceParts): object {
  return {
    supports_preview_metadata: true,
    supports_model_type_tags: true,
    max_upload_size: limits.maxUploadBytes,
    extension: {},
    node_replacements: true,
    assets: false,
    // Every caller is already signed in, and there is no account at another service.
    show_signin_button: false,
  }
}

async function findClient({ jobs }: SurfaceParts, accountId: string, jobId: string): Promise<string | null> {
  const record = await jobs.records.find(accountId, jobId)
  return toClientId(record?.submission?.clientId ?? null)
}
