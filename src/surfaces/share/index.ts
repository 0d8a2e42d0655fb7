/**
 * Pages of endpoints that their owners shared: whoever has the link runs the endpoint on them, without an account. Below `/share/{token}` is all that
 * the page needs, and nothing else of the service answers to a link. Every request asks the store whether the link still works. The surface may be
 * left out: deleting this folder leaves a service without it.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isJsonObject, type JsonObject, stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import type { Share } from '../../domain/endpoints/shares/share.ts'
import type { SharedRun } from '../../domain/endpoints/shares/shared-runs.ts'
import { invalidField, ServiceError } from '../../domain/errors.ts'
import { readIdempotencyKey } from '../../domain/idempotency/idempotency-key.ts'
import { readReference } from '../../domain/workflows/resolve-files.ts'
import { readJsonObject } from '../kit/bodies/json-body.ts'
import { createAccountConnections } from '../kit/connections/account-connections.ts'
import { openPageFiles, type PageFiles, sendPageFile } from '../kit/content/page-files.ts'
import { sendContent } from '../kit/content/send-content.ts'
import { type Contract, openContract } from '../kit/contracts/contract.ts'
import { PUBLIC_PAGE, sendError, serviceAddressOf } from '../kit/guards/routes.ts'
import { sendJson, untilGone } from '../kit/request.ts'
import { SharedStreams } from '../kit/streams/shared-streams.ts'
import { encodeFrame } from '../kit/streams/sse.ts'
import { mount, type Surface } from '../kit/surface.ts'
import type { SurfaceParts } from '../kit/surface-parts.ts'
import { RunStream } from './run-stream.ts'
import { toPageView, toRunView, visibleOutputs } from './run-view.ts'
import { createAnswerShareError } from './share-errors.ts'
import { ALLOWED_ORIGIN, admitVisitor, answerPreflight } from './share-guard.ts'
import { PAGE_HEADERS, renderSharePage, toPagePolicy } from './share-page.ts'
import { createOpenBlanked, type OpenBlanked } from './shared-content.ts'

const SOURCE = new URL('../../../spec/share.openapi.json', import.meta.url)
const SHARE_PATH = '/share'
const LINK = `${SHARE_PATH}/:token`
const RUN = `${LINK}/runs/:run`
const PAGE = /^\/share\/(?:[A-Za-z0-9_-]{43}|files\/[^/]+)$/
// Of all visitors of a link together, in one process.
const STREAMS_OF_LINK = 100

interface ShareDeps {
  readonly parts: SurfaceParts
  readonly spec: Contract
  readonly files: PageFiles
  readonly streams: SharedStreams
  readonly openBlanked: OpenBlanked
  /** The link of a request that was let in. */
  shareOf(request: FastifyRequest): Share
}

const OPERATIONS = [getSharedEndpoint, startSharedRun, getSharedRun, cancelSharedRun]
const FILE_OPERATIONS = [getSharedRunEvents, getSharedOutput, getSharedInput]

export function createSurface(parts: SurfaceParts): Surface {
  const { gate, log, endpoints } = parts
  const { mountPrefix } = gate
  const answerError = createAnswerShareError(log)
  const spec = openContract({ source: SOURCE, requestSchemas: [], needsCredentials: false })
  const files = openPageFiles()
  const streams = new SharedStreams({
    accountConnections: createAccountConnections(STREAMS_OF_LINK),
    isWelcome: () => true,
    onCredentialsChanged: () => () => {},
  })
  const opened = new WeakMap<FastifyRequest, Share>()
  const openOf = (request: FastifyRequest) => endpoints.shares.open(tokenOf(request))
  const deps: ShareDeps = {
    ...{ parts, spec, files, streams, openBlanked: createOpenBlanked() },
    shareOf(request) {
      const share = opened.get(request)
      if (share === undefined) throw new Error('this route is not behind the guard of links')
      return share
    },
  }

  async function admit(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const share = await openOf(request)
    admitVisitor(request, reply, share)
    opened.set(request, share)
  }

  function registerCalls(app: FastifyInstance): void {
    app.addHook('onRequest', admit)
    for (const register of [...OPERATIONS, ...FILE_OPERATIONS]) register(app, deps)
  }

  function registerPreflights(app: FastifyInstance): void {
    for (const url of [`${LINK}/endpoint`, `${LINK}/runs`, RUN, `${RUN}/*`])
      app.options(url, { config: { ...PUBLIC_PAGE.config, answersPreflights: true } }, async (request, reply) => {
        answerPreflight(request, reply, await openOf(request))
        return reply.code(204).send()
      })
  }

  const isOurs = (path: string) => path.startsWith(`${mountPrefix}${SHARE_PATH}/`)
  return {
    name: 'share',
    register(app) {
      app.setErrorHandler((error, request, reply) => sendError(reply, answerError(error, request.id)))
      mount(app, mountPrefix, (mounted) => {
        mount(mounted, '', registerCalls)
        mount(mounted, '', registerPreflights)
        mount(mounted, '', createPages(deps, openOf))
        getShareOpenapi(mounted, deps)
      })
    },
    reference: {
      path: '/docs/share',
      title: 'Shared pages of endpoints',
      document: spec.shown,
      examplePath: `${SHARE_PATH}/openapi.json`,
    },
    openStreams: () => streams.openStreams(),
    allowedMethods(path) {
      if (!isOurs(path)) return []
      const methods = spec.methodsOf(path.slice(mountPrefix.length))
      return methods.length === 0 && PAGE.test(path.slice(mountPrefix.length)) ? ['GET', 'HEAD'] : methods
    },
    answerErrorFor: (path) => (isOurs(path) ? answerError : null),
    drain: () => streams.close(encodeFrame('drain', '{}')),
  }
}

function tokenOf(request: FastifyRequest): string {
  return (request.params as { readonly token: string }).token
}

/** The page itself, and its files: they are the same for everybody. */
function createPages({ files }: Pick<ShareDeps, 'files'>, openOf: (request: FastifyRequest) => Promise<Share>) {
  return (app: FastifyInstance): void => {
    app.get(LINK, PUBLIC_PAGE, async (request, reply) => {
      const build = files.current()
      if (build === null) throw new ServiceError('not_found', 'the page of shared endpoints was never built here')
      const share = await openOf(request).catch((error: unknown) => {
        if (error instanceof ServiceError && error.refusal === 'not_found') return null
        throw error
      })
      if (share !== null) admitVisitor(request, reply, share)
      const { mountPrefix } = serviceAddressOf(request)
      void reply.headers({ ...PAGE_HEADERS, 'Content-Security-Policy': toPagePolicy(share) })
      // The policy says who may show it in a frame; this header cannot.
      if (share !== null && share.referrers.length > 0) void reply.removeHeader('X-Frame-Options')
      return reply.code(share === null ? 404 : 200).send(renderSharePage(build, mountPrefix))
    })
    app.get(`${SHARE_PATH}/files/:name`, PUBLIC_PAGE, (request, reply) =>
      sendPageFile(request, reply, files, (request.params as { readonly name: string }).name),
    )
  }
}

/** The contract, with the address at which this caller reached us. */
function getShareOpenapi(app: FastifyInstance, { spec }: Pick<ShareDeps, 'spec'>): void {
  app.get(`${SHARE_PATH}/openapi.json`, PUBLIC_PAGE, (request, reply) => {
    const { origin, mountPrefix } = serviceAddressOf(request)
    return sendJson(reply, 200, spec.textFor(origin + mountPrefix))
  })
}

function getSharedEndpoint(app: FastifyInstance, { parts, shareOf }: ShareDeps): void {
  app.get(`${LINK}/endpoint`, PUBLIC_PAGE, async (request, reply) => {
    const share = shareOf(request)
    const resolved = await parts.endpoints.sharedRuns.resolve(share)
    return sendJson(reply, 200, stringifyLosslessJson(toPageView(resolved, share)))
  })
}

function startSharedRun(app: FastifyInstance, { parts, shareOf }: ShareDeps): void {
  app.post(`${LINK}/runs`, PUBLIC_PAGE, async (request, reply) => {
    const share = shareOf(request)
    const idempotencyKey = readIdempotencyKey(request.raw.headersDistinct['idempotency-key'])
    const body = await readJsonObject(request, { maxBytes: parts.limits.maxBodyBytes })
    const run = await parts.endpoints.sharedRuns.start(share, {
      ...{ inputs: readInputs(body), idempotencyKey, signal: untilGone(request, reply) },
      address: parts.gate.callerAddressOf(request.raw),
      pool: parts.poolOf(serviceAddressOf(request), share.accountId),
    })
    return sendRun(request, reply, 201, run)
  })
}

function readInputs({ inputs = {}, ...others }: JsonObject): JsonObject {
  const [unknown] = Object.keys(others)
  if (unknown !== undefined)
    throw invalidField(unknown.slice(0, 64), 'is not a field of a run; put the inputs in the object inputs')
  if (!isJsonObject(inputs)) throw invalidField('inputs', 'must be an object with a value for each input')
  return inputs
}

/** Below the address at which the visitor reached the link, which is his own secret. */
function baseOf(request: FastifyRequest): string {
  return `${serviceAddressOf(request).mountPrefix}${SHARE_PATH}/${tokenOf(request)}/runs`
}

function sendRun(request: FastifyRequest, reply: FastifyReply, status: number, run: SharedRun): FastifyReply {
  return sendJson(reply, status, stringifyLosslessJson(toRunView(run, baseOf(request))))
}

function findRun(request: FastifyRequest, { parts, shareOf }: ShareDeps): Promise<SharedRun> {
  const { run } = request.params as { readonly run: string }
  return parts.endpoints.sharedRuns.find(shareOf(request), run)
}

function getSharedRun(app: FastifyInstance, deps: ShareDeps): void {
  app.get(RUN, PUBLIC_PAGE, async (request, reply) => sendRun(request, reply, 200, await findRun(request, deps)))
}

function cancelSharedRun(app: FastifyInstance, deps: ShareDeps): void {
  app.post(`${RUN}/cancel`, PUBLIC_PAGE, async (request, reply) => {
    const run = await findRun(request, deps)
    const job = await deps.parts.jobs.cancel(run.job.accountId, run.job.id)
    return sendRun(request, reply, 200, { ...run, job })
  })
}

function getSharedRunEvents(app: FastifyInstance, deps: ShareDeps): void {
  app.get(`${RUN}/events`, { ...PUBLIC_PAGE, exposeHeadRoute: false }, async (request, reply) => {
    const run = await findRun(request, deps)
    const share = deps.shareOf(request)
    const token = tokenOf(request)
    const base = baseOf(request)
    const headers = [...deps.parts.gate.answerHeaders(undefined, request.id), 'Vary', 'Origin']
    const page = reply.getHeader(ALLOWED_ORIGIN)
    if (typeof page === 'string') headers.push(ALLOWED_ORIGIN, page)
    await deps.streams.open(reply.raw, {
      caller: { accountId: share.id, keyId: null, scopes: null, endpoints: null },
      session: { text: token, isGood: () => isStillOpen(deps, token) },
      ...{ headers, key: `${base}/${run.token}` },
      make: () => new RunStream({ watchJob: deps.parts.endpoints.watchJob, run, base }),
    })
    return reply.hijack()
  })
}

async function isStillOpen({ parts }: ShareDeps, token: string): Promise<boolean> {
  try {
    await parts.endpoints.shares.open(token)
    return true
  } catch (error) {
    if (error instanceof ServiceError && error.refusal === 'not_found') return false
    throw error
  }
}

function getSharedOutput(app: FastifyInstance, deps: ShareDeps): void {
  app.get(`${RUN}/outputs/:index`, PUBLIC_PAGE, async (request, reply) => {
    const { job, version } = await findRun(request, deps)
    const { index } = request.params as { readonly index: string }
    const found = visibleOutputs(job, version).find((each) => String(each.index) === index)
    if (found === undefined) throw noSuchFile()
    return sendFile(request, reply, { accountId: job.accountId, assetId: found.output.assetId }, deps)
  })
}

/** A file that the visitor gave, for a run like this one. */
function getSharedInput(app: FastifyInstance, deps: ShareDeps): void {
  app.get(`${RUN}/inputs/:name`, PUBLIC_PAGE, async (request, reply) => {
    const { job, version, inputs } = await findRun(request, deps)
    const { name } = request.params as { readonly name: string }
    const isFile = version?.inputs.some((input) => input.name === name && input.type === 'file') === true
    const used = isFile && inputs !== null && Object.hasOwn(inputs, name) ? inputs[name] : null
    const reference = isJsonObject(used) ? readReference(used) : null
    if (reference?.kind !== 'id') throw noSuchFile()
    return sendFile(request, reply, { accountId: job.accountId, assetId: reference.given }, deps)
  })
}

async function sendFile(
  request: FastifyRequest,
  reply: FastifyReply,
  { accountId, assetId }: { readonly accountId: string; readonly assetId: string },
  { parts, openBlanked }: ShareDeps,
) {
  const content = await parts.console.openContent(accountId, assetId)
  return sendContent(request, reply, await openBlanked(content))
}

function noSuchFile(): ServiceError {
  return new ServiceError('not_found', 'there is no such file')
}
