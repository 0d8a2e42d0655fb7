/** The Model Router as one surface: its operations, its guards beyond the common ones, its envelope. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import type { Caller } from '../../domain/accounts/caller.ts'
import type { BlobStore } from '../../domain/assets/blob-store.ts'
import type { Access, SpendOf } from '../../domain/models/access/model-access.ts'
import type { EstimateModel, RunModel } from '../../domain/models/calls/run-call.ts'
import type { Model } from '../../domain/models/catalog/model.ts'
import type { ModelQueue } from '../../domain/models/queue/model-queue.ts'
import { RouterError } from '../../domain/models/router-error.ts'
import { type LoadOptions, loadOpenApi, type ServedDocument } from '../kit/contracts/contract.ts'
import { mustNameNoDeployment } from '../kit/guards/addresses.ts'
import type { Gate } from '../kit/guards/gate.ts'
import { createRouteGuard, needs, sendError, serviceAddressOf, wrongMethod } from '../kit/guards/routes.ts'
import { pathOf } from '../kit/request.ts'
import { mount, type Surface } from '../kit/surface.ts'
import { CALL_OPERATIONS, REQUEST_OPERATIONS } from './operations/calls.ts'
import { createListCursors, createModelDocuments, MODEL_OPERATIONS } from './operations/models.ts'
import { createAnswerRouterError, withSpend } from './router-errors.ts'
import {
  createBrandHeaders,
  createCostHeaders,
  createServedHeaders,
  MODEL_ROUTE,
  MODELS_PATH,
  type RequestContext,
} from './router-operation.ts'
import { createHotPath, createServeRun } from './serve-run.ts'

interface RouterV2Options {
  readonly gate: Gate
  readonly spec: ServedDocument
  readonly brands: readonly string[]
  readonly access: Access
  readonly runModel: RunModel
  readonly spendOf: SpendOf
  /** Who may serve a model besides its own provider. */
  readonly alternatesOf: (modelId: string) => readonly Model[]
  readonly estimate: EstimateModel
  readonly queue: ModelQueue
  readonly blobs: Pick<BlobStore, 'open'>
  readonly pricedAt: () => Date
  readonly cursorSecret: Uint8Array
  readonly maxBodyBytes: number
  readonly holdMs: number
  readonly creditsPerUsd: number
  readonly clock: Clock
  readonly log: Log
}

export function createRouterV2(options: RouterV2Options): Surface {
  const { gate, access, queue, blobs, maxBodyBytes, spec } = options
  const brand = createBrandHeaders(options.brands)
  const answerError = createAnswerRouterError(options.log, brand)
  const costHeaders = createCostHeaders(brand, options.creditsPerUsd)
  const servedHeaders = createServedHeaders(brand)
  const serveRun = createServeRun({ ...options, answerError, costHeaders, servedHeaders })
  const ownPath = `${gate.mountPrefix}${MODELS_PATH}`

  const guard = createRouteGuard<Caller>({
    before: (request) => mustNameNoDeployment(serviceAddressOf(request)),
    account: (request) => gate.authenticate(request.raw, 'api_key'),
  })

  function contextOf(request: FastifyRequest): RequestContext {
    const { origin, mountPrefix } = serviceAddressOf(request)
    return { caller: guard.knownOf(request), requestId: request.id, baseUrl: origin + mountPrefix }
  }

  function registerAll(app: FastifyInstance): void {
    guard.protect(app)
    const deps = {
      contextOf,
      access,
      serveRun,
      queue,
      blobs,
      costHeaders,
      servedHeaders,
      maxBodyBytes,
      estimate: options.estimate,
      pricedAt: options.pricedAt,
      cursors: createListCursors(options.cursorSecret, options.clock),
      documentFor: spec.textFor,
      documentOf: createModelDocuments({
        brands: options.brands,
        needsCredentials: gate.hasCredentials,
        alternatesOf: options.alternatesOf,
      }),
    }
    for (const register of [...MODEL_OPERATIONS, ...CALL_OPERATIONS, ...REQUEST_OPERATIONS]) register(app, deps)
    // Everything else below this path is the id of no model, in this surface's own words.
    app.all(`${MODELS_PATH}/*`, needs('any_scope'), (request, reply) => {
      const methods = methodsOf(pathOf(request.raw.url ?? ''))
      if (methods.length > 0) reply.header('allow', methods.join(', '))
      if (methods.length > 0 && !methods.includes(request.method)) throw wrongMethod(request.method, methods)
      throw new RouterError('unknown_model', 'there is no model under this address; GET /v2/models lists what there is')
    })
  }

  const isOurs = (path: string) => path === ownPath || path.startsWith(`${ownPath}/`)
  const methodsOf = (path: string) => (isOurs(path) ? spec.methodsOf(path.slice(gate.mountPrefix.length)) : [])

  const isRun = ({ method, routeOptions }: FastifyRequest) =>
    method === 'POST' && routeOptions.url === gate.mountPrefix + MODEL_ROUTE
  return {
    name: 'router-v2',
    register(app) {
      app.setErrorHandler(async (error, request, reply) => {
        const told = isRun(request) ? await withSpend(error, null, options.spendOf).catch(() => error) : error
        return sendError(reply, answerError(told, request.id))
      })
      mount(app, gate.mountPrefix, registerAll)
    },
    hotRoute: createHotPath(gate, serveRun),
    reference: {
      path: '/docs/router',
      title: 'Model Router',
      document: spec.shown,
      examplePath: MODELS_PATH,
      client: 'atelier/client/router',
    },
    allowedMethods: methodsOf,
    answerErrorFor: (path) => (isOurs(path) ? answerError : null),
  }
}

// The contract of this surface.

const SOURCE = new URL('../../../spec/router.openapi.json', import.meta.url)

export function loadRouterContract(options: LoadOptions): ServedDocument {
  return loadOpenApi(SOURCE, options)
}
