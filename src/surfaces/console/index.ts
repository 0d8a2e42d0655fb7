/**
 * The console: one page, its files, and the API that it and every other client with the same credential can ask. It may be left out:
 * deleting this folder leaves a service without it, and a service whose page was never built has the API alone.
 */
import type { FastifyInstance } from 'fastify'
import type { Caller } from '../../domain/accounts/caller.ts'
import { ServiceError } from '../../domain/errors.ts'
import { openPageFiles } from '../kit/content/page-files.ts'
import { openContract } from '../kit/contracts/contract.ts'
import { mustNameNoDeployment } from '../kit/guards/addresses.ts'
import {
  createRouteGuard,
  needs,
  refuseShadowedMethods,
  sendError,
  serviceAddressOf,
  wrongMethod,
} from '../kit/guards/routes.ts'
import { pathOf } from '../kit/request.ts'
import { SharedStreams } from '../kit/streams/shared-streams.ts'
import { encodeFrame } from '../kit/streams/sse.ts'
import { mount, type Surface } from '../kit/surface.ts'
import type { SurfaceParts } from '../kit/surface-parts.ts'
import { CONSOLE_API, type ConsoleDeps } from './console-operation.ts'
import { CONSOLE_PATH, createConsoleAnswerError, registerPage, toPolicy } from './console-page.ts'
import { getJob, getJobLayout, getJobLogs, getJobNodes } from './operations/job.ts'
import { getJobLive } from './operations/job-feed.ts'
import { cancelJobs, getEvents, getJobOutputsZip, getOutputsZip, listJobs, rerunJob } from './operations/jobs.ts'
import { createKey, listKeys, revokeKey, rotateKey } from './operations/keys.ts'
import {
  deleteForm,
  getEngines,
  getForm,
  getOpenapi,
  listAssets,
  listForms,
  listNodes,
  putForm,
} from './operations/library.ts'
import { getGpuUsage, getUsage, listCalls, listModels } from './operations/models.ts'
import { getThumbnail, listOutputs } from './operations/outputs.ts'
import { deleteView, getSuggestions, listViews, putView } from './operations/search.ts'
import { createSession, endSession, getSession } from './operations/session.ts'

const SOURCE = new URL('../../../spec/console.openapi.json', import.meta.url)

export function createSurface(parts: SurfaceParts): Surface {
  const { gate, log } = parts
  const answerError = createConsoleAnswerError(log)
  const spec = openContract({ source: SOURCE, requestSchemas: [], needsCredentials: gate.hasCredentials })
  const files = openPageFiles()
  const streams = new SharedStreams({
    accountConnections: parts.accountConnections,
    isWelcome: gate.isWelcome,
    onCredentialsChanged: gate.onCredentialsChanged,
  })
  const guard = createRouteGuard<Caller>({
    before: (request) => mustNameNoDeployment(serviceAddressOf(request)),
    account: (request) => gate.authenticate(request.raw, 'bearer'),
  })
  const deps: ConsoleDeps = {
    ...parts,
    files,
    streams,
    check: spec.check,
    specFor: spec.textFor,
    callerOf: guard.knownOf,
  }
  if (files.current() === null)
    log.info({}, 'the console is not there: its page was never built (npm run build:console)')

  function registerApi(app: FastifyInstance): void {
    guard.protect(app)
    for (const register of OPERATIONS) register(app, deps)
    refuseShadowedMethods(app, spec, 'public')
    app.all(`${CONSOLE_API}/*`, needs('public'), (request, reply) => {
      const methods = spec.methodsOf(pathOf(request.raw.url ?? '').slice(gate.mountPrefix.length))
      if (methods.length > 0) reply.header('Allow', methods.join(', '))
      if (methods.length > 0) throw wrongMethod(request.method, methods)
      throw new ServiceError('not_found', 'there is nothing under this address')
    })
  }

  const allowedMethods = (path: string): readonly string[] => {
    if (!path.startsWith(`${gate.mountPrefix}${CONSOLE_PATH}`)) return []
    const own = path.slice(gate.mountPrefix.length)
    return own.startsWith(`${CONSOLE_API}/`) ? spec.methodsOf(own) : ['GET', 'HEAD']
  }

  return {
    name: 'console',
    register: (app) =>
      mount(app, gate.mountPrefix, (mounted) => {
        mounted.setErrorHandler((error, request, reply) => sendError(reply, answerError(error, request.id)))
        mount(mounted, '', registerApi)
        mount(mounted, '', (pages) => registerPage(pages, files, toPolicy(parts.console.contentOrigins)))
      }),
    reference: {
      path: '/docs/console',
      title: 'Console API',
      document: spec.shown,
      examplePath: `${CONSOLE_API}/session`,
    },
    home: () => (files.current() === null ? null : CONSOLE_PATH),
    openStreams: () => streams.openStreams(),
    allowedMethods,
    answerErrorFor: (path) => (allowedMethods(path).length > 0 ? answerError : null),
    drain: () => streams.close(encodeFrame('notice', JSON.stringify({ kind: 'drain' }))),
  }
}

/** Every operation of the console's API. */
type Register = (app: FastifyInstance, deps: ConsoleDeps) => void

const OPERATIONS: readonly Register[] = [
  getSession,
  createSession,
  endSession,
  getOpenapi,
  listJobs,
  getEvents,
  getJob,
  getJobNodes,
  getJobLayout,
  getJobLogs,
  getJobLive,
  cancelJobs,
  rerunJob,
  listOutputs,
  getJobOutputsZip,
  getOutputsZip,
  getThumbnail,
  listNodes,
  getEngines,
  listAssets,
  listForms,
  getForm,
  putForm,
  deleteForm,
  getSuggestions,
  listViews,
  putView,
  deleteView,
  getUsage,
  getGpuUsage,
  listModels,
  listCalls,
  listKeys,
  createKey,
  rotateKey,
  revokeKey,
]
