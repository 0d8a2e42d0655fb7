/**
 * The paths that ComfyUI's partner nodes call when ComfyUI was started with `--comfy-api-base` of this service: `/proxy/<provider>`
 * for their models and `/customers/storage` for the files that they hand over. Only paths that are described in `nodes.json` of a
 * provider exist. The surface may be left out: deleting this folder leaves a service without it.
 */

import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ServiceError } from '../../domain/errors.ts'
import type { PartnerCaller } from '../../domain/models/partner/partner-nodes.ts'
import { nameCaller } from '../kit/bodies/body-memory.ts'
import { readJsonObject } from '../kit/bodies/json-body.ts'
import { type Contract, openContract } from '../kit/contracts/contract.ts'
import { mustNameNoDeployment } from '../kit/guards/addresses.ts'
import { readCredential } from '../kit/guards/gate.ts'
import { createRouteGuard, needs, PUBLIC_PAGE, sendError, serviceAddressOf, wrongMethod } from '../kit/guards/routes.ts'
import { pathOf, sendJson } from '../kit/request.ts'
import { mount, type Surface } from '../kit/surface.ts'
import type { PartnerParts, SurfaceParts } from '../kit/surface-parts.ts'
import { createAnswerNodeError } from './node-errors.ts'
import { createServeNode } from './serve-node.ts'

const SOURCE = new URL('../../../spec/partner-nodes.openapi.json', import.meta.url)
const OPERATIONS = [getPartnerOpenapi, callPartner, beginUpload, receiveUpload]

export function createSurface({ gate, log, partner }: SurfaceParts): Surface {
  const { mountPrefix, hasCredentials } = gate
  const answerError = createAnswerNodeError(log)
  const spec = openContract({ source: SOURCE, requestSchemas: ['UploadRequest'], needsCredentials: hasCredentials })

  const guard = createRouteGuard<PartnerCaller>({
    /** By its key, or by the token of a run. */
    async account(request) {
      mustNameNoDeployment(serviceAddressOf(request))
      const credential = readCredential(request.raw, 'api_key')
      if (credential === null || !partner.runs.isToken(credential))
        return { ...(await gate.authenticate(request.raw, 'api_key')), run: null }
      const caller = await partner.runs.open(credential)
      nameCaller(request.raw, caller.accountId)
      return caller
    },
  })

  function methodsOf(path: string): readonly string[] {
    if (!isOurs(path)) return []
    const own = path.slice(mountPrefix.length)
    if (own.startsWith(STORAGE_PATH) || own === `${PROXY_PATH}/openapi.json`) return spec.methodsOf(own)
    const { provider, rest } = splitPath(own)
    return partner.nodes.routes().methodsOf(provider, rest)
  }

  const isOurs = (path: string) =>
    [PROXY_PATH, STORAGE_PATH].some((own) => path === mountPrefix + own || path.startsWith(`${mountPrefix}${own}/`))
  const deps: NodeDeps = { partner, spec, mountPrefix, callerOf: guard.knownOf }
  return {
    name: 'partner-nodes',
    register(app) {
      app.setErrorHandler((error, request, reply) => sendError(reply, answerError(error, request.id)))
      mount(app, mountPrefix, (mounted) => {
        guard.protect(mounted)
        for (const register of OPERATIONS) register(mounted, deps)
      })
    },
    reference: {
      path: '/docs/partner-nodes',
      title: 'Partner nodes',
      document: spec.shown,
      examplePath: `${PROXY_PATH}/openapi.json`,
    },
    allowedMethods: methodsOf,
    answerErrorFor: (path) => (isOurs(path) ? answerError : null),
  }
}

// What every operation of this surface shares.

const PROXY_PATH = '/proxy'
const STORAGE_PATH = '/customers/storage'

interface NodeDeps {
  readonly partner: PartnerParts
  readonly spec: Contract
  readonly mountPrefix: string
  callerOf(request: FastifyRequest): PartnerCaller
}

/** `/proxy/bfl/flux-pro-1.1-ultra/generate`: the provider, and the path below it. */
function splitPath(path: string): { readonly provider: string; readonly rest: string } {
  const [, , provider = '', ...rest] = path.split('/')
  return { provider, rest: `/${rest.join('/')}` }
}

/** A path is looked up before anything of the body is read, and the caller is known before that. */
function callPartner(app: FastifyInstance, { partner, mountPrefix, callerOf }: NodeDeps): void {
  const serveNode = createServeNode(partner)
  app.all(`${PROXY_PATH}/*`, needs('models:run'), async (request, reply) => {
    const caller = callerOf(request)
    const { provider, rest } = splitPath(pathOf(request.raw.url ?? '').slice(mountPrefix.length))
    const routes = partner.nodes.routes()
    const found = routes.find(provider, request.method, rest)
    if (found !== null) return serveNode(request, reply, { caller, found })
    const methods = routes.methodsOf(provider, rest)
    if (methods.length > 0) reply.header('allow', methods.join(', '))
    if (methods.length > 0) throw wrongMethod(request.method, methods)
    throw new ServiceError('not_found', 'no partner node is known to call this path, so nothing was passed on')
  })
}

/** The contract, with the address at which this caller reached us. */
function getPartnerOpenapi(app: FastifyInstance, { spec }: NodeDeps): void {
  app.get(`${PROXY_PATH}/openapi.json`, needs('public'), (request, reply) => {
    const { origin, mountPrefix } = serviceAddressOf(request)
    return sendJson(reply, 200, spec.textFor(origin + mountPrefix))
  })
}

// Files that nodes hand to a provider: an address to send them to, and the sending itself.

const MAX_JSON_BYTES = 65_536

interface UploadRequest {
  readonly file_name: string
  readonly content_type?: string | null
}

function beginUpload(app: FastifyInstance, { partner, spec, callerOf }: NodeDeps): void {
  app.post(STORAGE_PATH, needs('assets:write'), async (request, reply) => {
    const { accountId } = callerOf(request)
    const body = await readJsonObject(request, { maxBytes: MAX_JSON_BYTES })
    const problem = spec.check('UploadRequest', body, 'body')
    if (problem !== null) throw new ServiceError('invalid_field', problem.replace(/^body\./, ''))
    const { file_name: fileName, content_type: contentType = null } = body as unknown as UploadRequest
    const place = partner.uploads.begin({ accountId, fileName, contentType })
    const { origin, mountPrefix } = serviceAddressOf(request)
    return sendJson(reply, 200, {
      upload_url: `${origin}${mountPrefix}${STORAGE_PATH}/${place.token}`,
      download_url: `${origin}${mountPrefix}${place.contentPath}`,
      expires_at: place.expiresAt.toISOString(),
      existing_file: false,
    })
  })
}

/** The address is the authorisation: nodes send no key along. */
function receiveUpload(app: FastifyInstance, { partner }: NodeDeps): void {
  // A token is longer than what the framework takes for a parameter.
  app.put(`${STORAGE_PATH}/*`, PUBLIC_PAGE, async (request, reply) => {
    const { '*': token } = request.params as { readonly '*': string }
    const gone = new AbortController()
    request.raw.once('close', () => {
      if (!request.raw.complete) gone.abort()
    })
    await partner.uploads.receive(token, request.raw, gone.signal)
    return reply.code(200).send()
  })
}
