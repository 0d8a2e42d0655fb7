/**
 * The paths that ComfyUI's partner nodes call when ComfyUI was started with `--comfy-api-base` of this service: `/proxy/<provider>`
 * for their models and `/customers/storage` for the files that they hand over. Only paths that are described in `nodes.json` of a
 * provider exist. The surface may be left out: deleting this folder leaves a service without it.
 */
import type { PartnerCaller } from '../../domain/models/partner/partner-nodes.ts'
import { nameCaller } from '../kit/bodies/body-memory.ts'
import { openContract } from '../kit/contracts/contract.ts'
import { readCredential } from '../kit/guards/credentials.ts'
import { mustNameNoDeployment } from '../kit/guards/deployment-address.ts'
import { sendError, serviceAddressOf } from '../kit/guards/guard-hooks.ts'
import { createRouteGuard } from '../kit/guards/rights.ts'
import type { SurfaceParts } from '../kit/parts/surface-parts.ts'
import { mount, type Surface } from '../kit/surface.ts'
import { createAnswerNodeError } from './node-errors.ts'
import { type NodeDeps, PROXY_PATH, STORAGE_PATH, splitPath } from './node-operation.ts'
import { callPartner, getPartnerOpenapi } from './operations/nodes.ts'
import { beginUpload, receiveUpload } from './operations/storage.ts'

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
    hotRoutes: [],
    reference: {
      path: '/docs/partner-nodes',
      title: 'Partner nodes',
      document: spec.document,
      examplePath: `${PROXY_PATH}/openapi.json`,
    },
    allowedMethods: methodsOf,
    answerErrorFor: (path) => (isOurs(path) ? answerError : null),
    drain() {},
  }
}
