/**
 * The console: one page, its files, and the API that it and every other client with the same credential can ask. It may be left out:
 * deleting this folder leaves a service without it, and a service whose page was never built has the API alone.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Caller } from '../../domain/accounts/caller.ts'
import { ServiceError } from '../../domain/errors.ts'
import { acceptsEncoding, matchesEtag, quoteDigest } from '../kit/content/send-content.ts'
import { openContract } from '../kit/contracts/contract.ts'
import { mustNameNoDeployment } from '../kit/guards/addresses.ts'
import {
  createRouteGuard,
  needs,
  PUBLIC_PAGE,
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
import { CONSOLE_API, CONSOLE_PATH, type ConsoleDeps } from './console-operation.ts'
import {
  createConsoleAnswerError,
  openPageFiles,
  PAGE_HEADERS,
  type PageFile,
  readTheme,
  renderConsolePage,
  toPolicy,
} from './console-page.ts'
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
import { getUsage, listCalls, listModels } from './operations/models.ts'
import { getThumbnail, listOutputs } from './operations/outputs.ts'
import { createSession, endSession, getSession } from './operations/session.ts'

const SOURCE = new URL('../../../spec/console.openapi.json', import.meta.url)
const FOR_EVER = 'public, max-age=31536000, immutable'

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
      document: spec.document,
      examplePath: `${CONSOLE_API}/session`,
    },
    home: () => (files.current() === null ? null : CONSOLE_PATH),
    openStreams: () => streams.openStreams(),
    allowedMethods,
    answerErrorFor: (path) => (allowedMethods(path).length > 0 ? answerError : null),
    drain: () => streams.close(encodeFrame('notice', JSON.stringify({ kind: 'drain' }))),
  }
}

function registerPage(pages: FastifyInstance, files: ConsoleDeps['files'], policy: string): void {
  const sendPage = (request: FastifyRequest, reply: FastifyReply) => {
    const address = serviceAddressOf(request)
    mustNameNoDeployment(address)
    const build = files.current()
    if (build === null) throw new ServiceError('not_found', 'the console is not part of this service')
    const page = renderConsolePage({ build, base: address.mountPrefix, theme: readTheme(request.headers.cookie) })
    return reply
      .headers({ ...PAGE_HEADERS, 'Content-Security-Policy': policy, 'Content-Type': 'text/html; charset=utf-8' })
      .send(page)
  }
  pages.get(CONSOLE_PATH, PUBLIC_PAGE, sendPage)
  pages.get(`${CONSOLE_PATH}/*`, PUBLIC_PAGE, sendPage)
  pages.get(`${CONSOLE_PATH}/files/:name`, PUBLIC_PAGE, (request, reply) => {
    const { name } = request.params as { readonly name: string }
    const file = files.current()?.files.get(name)
    if (file === undefined) throw new ServiceError('not_found', 'there is no such file')
    return sendFile(request, reply, { name, file })
  })
}

/** A name contains a digest of the content, so browsers may cache the file forever. */
function sendFile(request: FastifyRequest, reply: FastifyReply, { name, file }: { name: string; file: PageFile }) {
  const etag = quoteDigest(name)
  reply.headers({ 'Cache-Control': FOR_EVER, ETag: etag, Vary: 'Accept-Encoding', 'Content-Type': file.contentType })
  if (matchesEtag(request.headers['if-none-match'], etag)) return reply.code(304).send()
  const { encoding, bytes } = choose(file, request.headers['accept-encoding'])
  if (encoding !== null) reply.header('Content-Encoding', encoding)
  return reply.send(bytes)
}

function choose(file: PageFile, accepted: string | string[] | undefined) {
  if (file.brotli !== null && acceptsEncoding('br', accepted)) return { encoding: 'br', bytes: file.brotli }
  if (file.gzip !== null && acceptsEncoding('gzip', accepted)) return { encoding: 'gzip', bytes: file.gzip }
  return { encoding: null, bytes: file.plain }
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
  getUsage,
  listModels,
  listCalls,
  listKeys,
  createKey,
  rotateKey,
  revokeKey,
]
