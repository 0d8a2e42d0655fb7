/**
 * The Legacy v1 API as one surface: every route under `/api/x` and bare `/x`, and the WebSocket. It may be left out: deleting
 * this folder leaves a service without it. Jobs, assets and accounts are those of the other surfaces; only the words differ.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { createUuidV7 } from '../../../lib/ids.ts'
import { type Caller, mustHaveScope } from '../../domain/accounts/caller.ts'
import { mustNameNoDeployment } from '../kit/deployment-address.ts'
import { placeOf, sendError } from '../kit/guard-hooks.ts'
import { compileMethods, type MethodsOf, type PathMethods, refuseShadowedMethods } from '../kit/path-methods.ts'
import type { Surface } from '../kit/surface.ts'
import type { SurfaceParts } from '../kit/surface-parts.ts'
import { createAudiences, toAudience } from './audience.ts'
import { deprecationHeaders, pathOf } from './deprecation.ts'
import { createAnswerError } from './errors.ts'
import { createExtraNotes } from './extra-notes.ts'
import { createFreshFiles } from './fresh-files.ts'
import { createApi, type OperationDeps } from './operation.ts'
import { loadContract } from './operations/get-openapi.ts'
import { isPromptSubmit } from './operations/post-prompt.ts'
import { createAnswerPromptError } from './prompt-errors.ts'
import { registerRoutes } from './routes.ts'
import { scopeOf } from './scope-of.ts'
import { openSockets } from './ws/open-sockets.ts'

const CALLER = Symbol('caller')
type Known = FastifyRequest & { [CALLER]?: Caller }

export function createSurface(parts: SurfaceParts): Surface {
  const { gate, bus, clock } = parts
  const answerError = createAnswerError(parts.log)
  const answerPromptError = createAnswerPromptError(answerError)
  const features = toFeatures(parts)
  const freshFiles = createFreshFiles(bus)
  const deps: OperationDeps = {
    ...parts,
    audiences: createAudiences({ lookUp: (accountId, jobId) => findClient(parts, accountId, jobId) }),
    notes: createExtraNotes(),
    freshFiles,
    features,
    newPromptId: createUuidV7(() => clock.now().getTime()),
    callerOf,
    accountOf: (request) => callerOf(request).accountId,
  }
  const sockets = openSockets(parts, { answerError, audiences: deps.audiences, features: () => features })
  let methodsOf: MethodsOf = () => []

  function register(app: FastifyInstance): void {
    app.decorateRequest(CALLER, undefined)
    app.setErrorHandler((error, request, reply) => {
      reply.headers(deprecationHeaders(pathOf(request), gate.mountPrefix))
      const answer = isPromptSubmit(request) ? answerPromptError : answerError
      return sendError(reply, answer(error, request.id))
    })
    app.addHook('onRequest', async (request, reply) => {
      reply.headers(deprecationHeaders(pathOf(request), gate.mountPrefix))
      mustNameNoDeployment(placeOf(request))
      const caller = await gate.authenticate(request.raw, 'api_key')
      const scope = scopeOf(request)
      if (scope !== null) mustHaveScope(caller, scope)
      ;(request as Known)[CALLER] = caller
    })
    const api = createApi(app)
    registerRoutes(api, deps)
    const paths = toPaths(api.routes)
    methodsOf = compileMethods(paths)
    refuseShadowedMethods(app, paths, methodsOf)
  }

  const allowedMethods: MethodsOf = (path) =>
    path.startsWith(gate.mountPrefix) ? methodsOf(path.slice(gate.mountPrefix.length)) : []

  return {
    name: 'legacy-v1',
    register(app) {
      app.register(
        (mounted, _options, done) => {
          register(mounted)
          done()
        },
        { prefix: gate.mountPrefix },
      )
    },
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
      freshFiles[Symbol.dispose]()
    },
  }
}

/** Out of the registered routes, `METHOD /path/:parameter`: bare addresses are ours too, and stand in no document. */
function toPaths(routes: readonly string[]): PathMethods[] {
  const paths = new Map<string, string[]>()
  for (const route of routes) {
    const [method, url] = route.split(' ')
    const template = url.replaceAll(/:(\w+)/g, '{$1}')
    paths.set(template, [...(paths.get(template) ?? []), method])
  }
  return [...paths].map(([template, methods]) => ({ template, methods }))
}

/** What the server can do, told over HTTP and over the socket alike. */
function toFeatures({ limits }: SurfaceParts): object {
  return {
    supports_preview_metadata: true,
    supports_model_type_tags: true,
    max_upload_size: limits.maxUploadBytes,
    extension: {},
    node_replacements: true,
    assets: false,
  }
}

async function findClient({ jobs }: SurfaceParts, accountId: string, jobId: string): Promise<string | null> {
  const record = await jobs.records.find(accountId, jobId)
  return toAudience(record?.submission?.clientId ?? null)
}

function callerOf(request: FastifyRequest): Caller {
  const caller = (request as Known)[CALLER]
  if (caller === undefined) throw new Error('this route is not behind the guards that know the caller')
  return caller
}
