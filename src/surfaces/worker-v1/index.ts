/**
 * The worker protocol as one surface: keys of its own, which open nothing else, versions that are negotiated, and bounds on what
 * one key may ask for. Requests keep no state here: any node serves any of them.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Clock } from '../../../lib/clock.ts'
import { isUuid } from '../../../lib/ids.ts'
import { isJsonObject } from '../../../lib/json/lossless-json.ts'
import type { Log } from '../../../lib/log.ts'
import { ServiceError } from '../../domain/errors.ts'
import type { WorkerGateway } from '../../domain/workers/worker-gateway.ts'
import type { WorkerIdentity } from '../../domain/workers/worker-keys.ts'
import { nameCaller } from '../kit/bodies/body-memory.ts'
import { type JsonReading, parseBody, readBodyBytes } from '../kit/bodies/json-body.ts'
import { openContract } from '../kit/contracts/contract.ts'
import { mustNameNoDeployment } from '../kit/guards/addresses.ts'
import { type Gate, readCredential } from '../kit/guards/gate.ts'
import { createRouteGuard, needs, sendError, serviceAddressOf, wrongMethod } from '../kit/guards/routes.ts'
import { pathOf } from '../kit/request.ts'
import { mount, type Surface } from '../kit/surface.ts'
import { createWorkerLoad, LiveSockets } from './live-sockets.ts'
import { claimBuild, moveBuild } from './operations/builds.ts'
import { offerBlob, putBlob, readInput, readRelease, readReleaseBlob, readReleaseUse } from './operations/files.ts'
import { claimJob, commitRun, releaseLeases, renewLeases, reserveNumbers, runNodeModel } from './operations/runs.ts'
import {
  beatWorker,
  getHello,
  getWorkerOpenapi,
  leaveService,
  openLive,
  publishEngines,
  putCatalog,
} from './operations/service.ts'
import {
  createAnswerWorkerError,
  INSTANCE_HEADER,
  mustSpeak,
  PROTOCOL_VERSIONS,
  WORKER_PATH,
  type WorkerKit,
} from './worker-operation.ts'

interface WorkerSurfaceOptions {
  readonly gate: Gate
  readonly gateway: WorkerGateway
  readonly serviceId: string
  readonly version: string
  readonly maxModelBytes: number
  readonly holdMs: number
  readonly clock: Clock
  readonly log: Log
  /** Left out: those that this program was made for. */
  readonly protocolVersions?: readonly number[]
}

const SOURCE = new URL('../../../spec/worker.openapi.json', import.meta.url)
const REQUEST_SCHEMAS = [
  ...[
    'ClaimRequest',
    'LeaseList',
    'ReturnedLeases',
    'Commit',
    'NumberRequest',
    'BlobOffer',
    'NodeModelCall',
    'Engines',
  ],
  ...['Beat', 'BuildClaim', 'BuildMove'],
]
const OPERATIONS = [
  ...[getWorkerOpenapi, getHello, openLive, claimJob, renewLeases, releaseLeases, commitRun, reserveNumbers],
  ...[readInput, offerBlob, putBlob, runNodeModel, publishEngines, leaveService, putCatalog, beatWorker],
  ...[readRelease, readReleaseUse, readReleaseBlob, claimBuild, moveBuild],
]
// What is asked before a version is agreed on.
const UNVERSIONED = new Set(['hello', 'openapi.json'])
const MAX_BODY_BYTES = 1024 * 1024
const MAX_VALUES = 500_000
const PLAIN: JsonReading<number> = { parse: JSON.parse, readNumber: Number, maxValues: MAX_VALUES }

export function createWorkerSurface(options: WorkerSurfaceOptions): Surface {
  const { gate, gateway, clock, log, protocolVersions = PROTOCOL_VERSIONS } = options
  const answerError = createAnswerWorkerError(log)
  const spec = openContract({ source: SOURCE, requestSchemas: REQUEST_SCHEMAS, needsCredentials: true })
  const load = createWorkerLoad(() => performance.now())
  const identify = (request: FastifyRequest['raw']) => gateway.keys.identify(readCredential(request, 'bearer'))
  const live = new LiveSockets({ gate, gateway, identify, answerError, protocolVersions, load, log })

  const guard = createRouteGuard<WorkerIdentity>({
    before: (request) => mustNameNoDeployment(serviceAddressOf(request)),
    worker(request, reply) {
      const worker = identify(request.raw)
      nameCaller(request.raw, `worker ${worker.keyId}`)
      reply.raw.once('close', load.begin(worker.keyId))
      const [last = ''] = pathOf(request.raw.url ?? '')
        .split('/')
        .slice(-1)
      if (!UNVERSIONED.has(last)) mustSpeak(request.raw, protocolVersions)
      return worker
    },
  })

  const kit: WorkerKit = {
    gateway,
    workerOf: guard.knownOf,
    instanceOf: (request) => readInstance(request.raw.headers[INSTANCE_HEADER]),
    async readBody<Body>(request: FastifyRequest, schemaName: string, maxBytes = MAX_BODY_BYTES): Promise<Body> {
      const bytes = await readBodyBytes(request.raw, { maxBytes })
      const body: unknown = await parseBody(request.raw, bytes, PLAIN)
      if (!isJsonObject(body)) throw new ServiceError('invalid_request', 'the body must be a JSON object')
      const problem = spec.check(schemaName, body, 'body')
      if (problem !== null) throw new ServiceError('invalid_field', problem.replace(/^body\./, ''))
      return body as Body
    },
  }

  function registerAll(app: FastifyInstance): void {
    guard.protect(app)
    const deps = { kit, ...options, protocolVersions, clock, specFor: spec.textFor }
    for (const register of OPERATIONS) register(app, deps)
    app.all(`${WORKER_PATH}/*`, needs('worker'), (request, reply) => {
      const methods = methodsOf(pathOf(request.raw.url ?? ''))
      if (methods.length > 0) reply.header('allow', methods.join(', '))
      if (methods.length > 0 && !methods.includes(request.method)) throw wrongMethod(request.method, methods)
      throw new ServiceError('not_found', 'there is nothing under this address')
    })
  }

  const ownPath = `${gate.mountPrefix}${WORKER_PATH}/`
  const isOurs = (path: string) => path.startsWith(ownPath)
  const methodsOf = (path: string) => (isOurs(path) ? spec.methodsOf(path.slice(gate.mountPrefix.length)) : [])
  return {
    name: 'worker-v1',
    register(app) {
      app.setErrorHandler((error, request, reply) => sendError(reply, answerError(error, request.id)))
      mount(app, gate.mountPrefix, registerAll)
    },
    upgrades: live.upgrades,
    reference: {
      path: '/docs/worker',
      title: 'Worker protocol',
      document: spec.shown,
      examplePath: `${WORKER_PATH}/hello`,
    },
    gauges: [{ name: 'atelier_worker_sockets', help: 'Live connections of joined workers.', read: () => live.count() }],
    allowedMethods: methodsOf,
    answerErrorFor: (path) => (isOurs(path) ? answerError : null),
    drain: () => live.close(),
  }
}

function readInstance(header: string | string[] | undefined): string {
  if (typeof header === 'string' && isUuid(header)) return header
  throw new ServiceError('invalid_request', 'the header Atelier-Worker-Instance must be an id of this process')
}
