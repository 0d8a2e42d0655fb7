/**
 * The admin API as one surface: its own token, its own envelope, its own contract. It lies at the root and never below a
 * deployment's address. Other parts of the service add operations of their own through `operations`.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isJsonObject } from '../../../lib/json/lossless-json.ts'
import type { AuditEntry, AuditStore } from '../../domain/accounts/audit.ts'
import { ServiceError } from '../../domain/errors.ts'
import { readJsonBody } from '../kit/bodies/json-body.ts'
import { openContract } from '../kit/contracts/contract.ts'
import { wrongMethod } from '../kit/contracts/path-methods.ts'
import { mustNameNoDeployment } from '../kit/guards/deployment-address.ts'
import { sendError, serviceAddressOf } from '../kit/guards/guard-hooks.ts'
import type { OperatorGuard } from '../kit/guards/operator-guard.ts'
import { createRouteGuard, needs } from '../kit/guards/rights.ts'
import { pathOf } from '../kit/request-url.ts'
import type { AnswerError, Surface } from '../kit/surface.ts'
import { ADMIN_PATH, type AdminKit, type AdminOperation, type AuditedStores } from './admin-operation.ts'
import { getPool, listNodes, listPools, type NodeParts } from './operations/nodes.ts'
import { type GetOverviewDeps, getOpenapi, getOverview, listAudit } from './operations/service.ts'
import { registerShared, type SharedParts } from './register-operations.ts'

export interface AdminOptions {
  readonly guard: OperatorGuard
  /** False: whoever reaches the service is its operator. */
  readonly needsCredentials: boolean
  readonly answerError: AnswerError
  readonly clock: AdminKit['clock']
  /** The stores with an audit line bound to their writes. */
  readonly audited: (entry: AuditEntry) => AuditedStores
  readonly audit: AuditStore
  /** Who sent this request, for its audit line. */
  readonly actorOf: (request: FastifyRequest) => string
  readonly nodes: NodeParts
  readonly overview: Omit<GetOverviewDeps, 'accounts' | 'deployments'>
  /** null on the local kind, which has one account and no deployments. */
  readonly shared: SharedParts | null
  readonly operations?: readonly AdminOperation[]
  /** The service is shutting down: ends what stays open. */
  readonly drain?: () => void
}

const SOURCE = new URL('../../../spec/admin.openapi.json', import.meta.url)
const REQUEST_SCHEMAS = [
  'NewAccount',
  'AccountChange',
  'NewKey',
  'KeyRotation',
  'NewGrant',
  'NewRefund',
  'NewDeployment',
  'DeploymentChange',
  'DeploymentStop',
  'NewWorkerKey',
]
/** Paths that only the kinds with accounts have. */
const SHARED_PATH = /^\/admin\/v1\/(accounts|keys|tiers|refunds|ledger|usage|deployments)(\/|$)/
// Room for tens of thousands of node class names in the limits of one account.
const MAX_BODY_BYTES = 4 * 1024 * 1024

export function createAdmin(options: AdminOptions): Surface {
  const { guard, answerError, clock, shared } = options
  const spec = openContract({
    source: SOURCE,
    requestSchemas: REQUEST_SCHEMAS,
    needsCredentials: options.needsCredentials,
    hasPath: (template) => shared !== null || !SHARED_PATH.test(template),
  })
  const kit: AdminKit = {
    clock,
    audited: (request, change) => options.audited({ ...change, actor: options.actorOf(request), at: clock.now() }),
    note: (request, change) => options.audit.note({ ...change, actor: options.actorOf(request), at: clock.now() }),
    async readBody<Body>(request: FastifyRequest, schemaName: string): Promise<Body> {
      const body = hasBody(request) ? await readJsonBody(request, { maxBytes: MAX_BODY_BYTES }) : {}
      if (!isJsonObject(body)) throw new ServiceError('invalid_request', 'the body must be a JSON object')
      const problem = spec.check(schemaName, body, 'body')
      if (problem !== null) throw toInvalid(problem)
      return body as Body
    },
  }

  function register(app: FastifyInstance): void {
    app.setErrorHandler((error, request, reply) => sendError(reply, answerError(error, request.id)))
    createRouteGuard({
      before: (request) => mustNameNoDeployment(serviceAddressOf(request)),
      operator: (request) => guard(request.raw),
    }).protect(app)
    getOpenapi(app, { specFor: spec.textFor })
    const { accounts = null, deployments = null } = shared ?? {}
    getOverview(app, { ...options.overview, accounts, deployments })
    listAudit(app, { audit: options.audit })
    for (const operation of [listNodes, listPools, getPool]) operation(app, options.nodes)
    if (shared !== null) registerShared(app, kit, shared)
    for (const operation of options.operations ?? []) operation(app, kit)
    // Every other address below this path is refused in this envelope, and only to a caller with the token.
    app.all(`${ADMIN_PATH}/*`, needs('operator'), (request, reply) => {
      const methods = spec.methodsOf(pathOf(request.raw.url ?? ''))
      if (methods.length > 0) reply.header('allow', methods.join(', '))
      if (methods.length > 0 && !methods.includes(request.method)) throw wrongMethod(request.method, methods)
      throw new ServiceError('not_found', 'there is nothing under this address')
    })
  }

  return {
    name: 'admin',
    register,
    hotRoutes: [],
    reference: {
      path: '/docs/admin',
      title: 'Admin API',
      document: spec.document,
      examplePath: `${ADMIN_PATH}/overview`,
      isAtRoot: true,
    },
    allowedMethods: (path) => (path.startsWith(ADMIN_PATH) ? spec.methodsOf(path) : []),
    answerErrorFor: (path) => (path.startsWith(`${ADMIN_PATH}/`) ? answerError : null),
    drain: () => options.drain?.(),
  }
}

function hasBody({ raw }: FastifyRequest): boolean {
  return raw.headers['transfer-encoding'] !== undefined || Number(raw.headers['content-length'] ?? 0) > 0
}

/** `body.limits.streams must be …` is about `limits.streams`; what is wrong with the body as a whole has no field. */
function toInvalid(problem: string): ServiceError {
  const field = /^body\.([\w.]+) /.exec(problem)?.[1] ?? null
  return new ServiceError('invalid_field', problem.replace(/^body\./, ''), { details: { field } })
}
