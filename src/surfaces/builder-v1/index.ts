/**
 * Builds, uploaded files and releases below `/builder/v1`, as the official command line asks for them. The surface may be left out:
 * deleting this folder leaves a service without it.
 */
import type { FastifyInstance } from 'fastify'
import type { Caller } from '../../domain/accounts/caller.ts'
import { BLOB_LINK_PATH } from '../../domain/environments/blob-links.ts'
import { openContract } from '../kit/contracts/contract.ts'
import { mustNameNoDeployment } from '../kit/guards/addresses.ts'
import { createRouteGuard, needs, sendError, serviceAddressOf } from '../kit/guards/routes.ts'
import { sendJson } from '../kit/request.ts'
import { mount, type Surface } from '../kit/surface.ts'
import type { SurfaceParts } from '../kit/surface-parts.ts'
import { createAnswerBuildError } from './build-errors.ts'
import { BUILDER_PATH, type BuilderDeps } from './builder-operation.ts'
import { announceBlob, listBlobs, putBlob, readBlob } from './operations/blobs.ts'
import { changeBuild, createBuild, deleteBuild, getBuild, listBuilds, validateBuild } from './operations/builds.ts'
import {
  listBaseImages,
  listBuildTargets,
  listModelDirectories,
  resolveModels,
  resolveSnapshot,
  resolveWorkflow,
} from './operations/references.ts'
import {
  createRelease,
  deleteRelease,
  downloadArtifact,
  getRelease,
  getReleaseLogs,
  getReleaseManifest,
  listReleases,
} from './operations/releases.ts'

const SOURCE = new URL('../../../spec/builder-v1.openapi.json', import.meta.url)
const REQUEST_SCHEMAS = [
  ...['BlobRequest', 'BuildRequest', 'BuildChange', 'ReleaseRequest', 'ModelsRequest', 'SnapshotRequest'],
  'WorkflowRequest',
]
const OPERATIONS = [
  ...[createBuild, listBuilds, getBuild, changeBuild, deleteBuild, validateBuild],
  ...[createRelease, listReleases, getRelease, getReleaseLogs, getReleaseManifest, deleteRelease, downloadArtifact],
  ...[announceBlob, listBlobs, putBlob, readBlob],
  ...[listBaseImages, listBuildTargets, listModelDirectories, resolveModels, resolveSnapshot, resolveWorkflow],
  getBuilderOpenapi,
]

export function createSurface(parts: SurfaceParts): Surface {
  const { gate, log } = parts
  const { mountPrefix } = gate
  const answerError = createAnswerBuildError(log)
  const spec = openContract({ source: SOURCE, requestSchemas: REQUEST_SCHEMAS, needsCredentials: gate.hasCredentials })
  const guard = createRouteGuard<Pick<Caller, 'accountId' | 'keyId'>>({
    async account(request) {
      const caller = await gate.authenticate(request.raw, 'api_key')
      // Builds belong to the account, not to one of its deployments.
      mustNameNoDeployment(serviceAddressOf(request))
      return caller
    },
  })
  const deps: BuilderDeps = {
    ...{ parts, spec, callerOf: guard.knownOf },
    baseUrlOf(request) {
      const { origin, mountPrefix: prefix } = serviceAddressOf(request)
      return origin + prefix
    },
  }
  const isOurs = (path: string) =>
    [BUILDER_PATH, BLOB_LINK_PATH].some((own) => path.startsWith(`${mountPrefix}${own}/`))
  return {
    name: 'builder-v1',
    register(app) {
      app.setErrorHandler((error, request, reply) => sendError(reply, answerError(error, request.id)))
      mount(app, mountPrefix, (mounted) => {
        guard.protect(mounted)
        for (const register of OPERATIONS) register(mounted, deps)
      })
    },
    reference: {
      path: '/docs/builder',
      title: 'Builds and releases',
      document: spec.shown,
      examplePath: `${BUILDER_PATH}/builds`,
      client: 'atelier/client/builds',
    },
    allowedMethods: (path) => (isOurs(path) ? spec.methodsOf(path.slice(mountPrefix.length)) : []),
    answerErrorFor: (path) => (isOurs(path) ? answerError : null),
  }
}

/** The contract, with the address at which this caller reached us. */
function getBuilderOpenapi(app: FastifyInstance, { spec, baseUrlOf }: BuilderDeps): void {
  app.get(`${BUILDER_PATH}/openapi.json`, needs('public'), (request, reply) =>
    sendJson(reply, 200, spec.textFor(baseUrlOf(request))),
  )
}
