/** The Model Router as one surface: its operations, its guards beyond the common ones, its envelope. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import { type Caller, mustHaveScope } from '../../domain/accounts/caller.ts'
import type { BlobStore } from '../../domain/assets/blob-store.ts'
import type { SpendOf } from '../../domain/models/access/committed-spend.ts'
import type { Access } from '../../domain/models/access/model-access.ts'
import type { EstimateModel, RunModel } from '../../domain/models/calls/run-call.ts'
import type { ModelQueue } from '../../domain/models/queue/model-queue.ts'
import { RouterError } from '../../domain/models/router-error.ts'
import { mustNameNoDeployment } from '../kit/deployment-address.ts'
import type { Gate } from '../kit/gate.ts'
import { placeOf, sendError } from '../kit/guard-hooks.ts'
import { wrongMethod } from '../kit/path-methods.ts'
import type { Surface } from '../kit/surface.ts'
import { createBrandHeaders } from './brand-headers.ts'
import { createCostHeaders } from './cost-headers.ts'
import { createAnswerRouterError, withSpend } from './errors.ts'
import { createHotPath } from './hot-path.ts'
import { createListCursors } from './list-cursor.ts'
import { createModelDocuments } from './model-document.ts'
import type { OperationKit, RequestContext } from './operation.ts'
import { cancelRequest } from './operations/cancel-request.ts'
import { estimateModel } from './operations/estimate-model.ts'
import { getModel } from './operations/get-model.ts'
import { getModelOpenapi } from './operations/get-model-openapi.ts'
import { getRequest } from './operations/get-request.ts'
import { getRequestStatus } from './operations/get-request-status.ts'
import { getRouterOpenapi } from './operations/get-router-openapi.ts'
import { listModels } from './operations/list-models.ts'
import { runModel } from './operations/run-model.ts'
import { submitRequest } from './operations/submit-request.ts'
import { MODEL_ROUTE, MODELS_PATH } from './paths.ts'
import { createServeRun } from './serve-run.ts'
import type { RouterSpec } from './spec.ts'

export interface RouterV2Options {
  readonly gate: Gate
  readonly spec: RouterSpec
  readonly brands: readonly string[]
  readonly access: Access
  readonly runModel: RunModel
  readonly spendOf: SpendOf
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

const CALLER = Symbol('caller')
type Known = FastifyRequest & { [CALLER]?: Caller }
const WRITES = new Set(['POST', 'PUT'])

export function createRouterV2(options: RouterV2Options): Surface {
  const { gate, access, queue, blobs, maxBodyBytes, spec } = options
  const brand = createBrandHeaders(options.brands)
  const answerError = createAnswerRouterError(options.log, brand)
  const costHeaders = createCostHeaders(brand, options.creditsPerUsd)
  const serveRun = createServeRun({ ...options, answerError, costHeaders })
  const kit: OperationKit = { contextOf }
  const ownPath = `${gate.mountPrefix}${MODELS_PATH}`

  function registerAll(app: FastifyInstance): void {
    app.decorateRequest(CALLER, undefined)
    app.addHook('onRequest', async (request) => {
      mustNameNoDeployment(placeOf(request))
      const caller = await gate.authenticate(request.raw, 'api_key')
      mustHaveScope(caller, WRITES.has(request.method) ? 'models:run' : 'models:read')
      ;(request as Known)[CALLER] = caller
    })
    listModels(app, { kit, access, cursors: createListCursors(options.cursorSecret, options.clock) })
    getRouterOpenapi(app, { kit, specFor: spec.textFor })
    getModel(app, { kit, access })
    getModelOpenapi(app, {
      kit,
      access,
      documentOf: createModelDocuments({ brands: options.brands, needsCredentials: gate.hasCredentials }),
    })
    runModel(app, { kit, serveRun })
    estimateModel(app, { kit, access, estimate: options.estimate, pricedAt: options.pricedAt, maxBodyBytes })
    submitRequest(app, { kit, access, queue, maxBodyBytes })
    getRequestStatus(app, { kit, access, queue })
    getRequest(app, { kit, access, queue, blobs, costHeaders })
    cancelRequest(app, { kit, access, queue })
    // Everything else below this path is the id of no model, in this surface's own words.
    app.all(`${MODELS_PATH}/*`, (request, reply) => {
      const path = (request.raw.url ?? '').split('?', 1)[0]
      const methods = methodsOf(path)
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
      app.register(
        (mounted, _options, done) => {
          registerAll(mounted)
          done()
        },
        { prefix: gate.mountPrefix },
      )
    },
    hotRoutes: [createHotPath(gate, serveRun)],
    reference: {
      path: '/docs/router',
      title: 'Model Router',
      document: spec.document,
      examplePath: MODELS_PATH,
    },
    allowedMethods: methodsOf,
    answerErrorFor: (path) => (isOurs(path) ? answerError : null),
    drain() {},
  }
}

function contextOf(request: FastifyRequest): RequestContext {
  const { origin, mountPrefix } = placeOf(request)
  const caller = (request as Known)[CALLER]
  if (caller === undefined) throw new Error('this route is not behind the guards that know the caller')
  return { caller, requestId: request.id, baseUrl: origin + mountPrefix }
}
