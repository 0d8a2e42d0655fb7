/** Releases: what a build said when it was cut, and what became of it on each target. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { ReleaseWithArtifacts } from '../../../domain/environments/build.ts'
import { BuildError } from '../../../domain/environments/build-error.ts'
import { readTargets } from '../../../domain/environments/read-definition.ts'
import { idOf, readNumber, readParameters, sendJson } from '../../kit/request.ts'
import { toReleaseRow, toReleaseView } from '../build-view.ts'
import { BUILDER_PATH, type BuilderDeps, READ, readBody, WRITE } from '../builder-operation.ts'

const RELEASES = `${BUILDER_PATH}/releases`
const OF_BUILD = `${BUILDER_PATH}/builds/:id/releases`
const PAGE = { fallback: 100, max: 100 }
// Long enough to fetch a set of large models.
const LINK_MS = 24 * 3_600_000

export function createRelease(app: FastifyInstance, deps: BuilderDeps): void {
  app.post(OF_BUILD, WRITE, async (request, reply) => {
    const { targets } = await readBody<{ readonly targets: unknown }>(request, 'ReleaseRequest', deps)
    const release = await deps.parts.builds.builds.cut(deps.callerOf(request), idOf(request), targets)
    const statusUrl = `${deps.baseUrlOf(request)}${RELEASES}/${release.id}`
    return sendJson(reply, 201, { releaseId: release.id, statusUrl, ...toReleaseRow(release) })
  })
}

export function listReleases(app: FastifyInstance, deps: BuilderDeps): void {
  app.get(OF_BUILD, READ, async (request, reply) => {
    const parameters = readParameters(request.raw.url ?? '', ['cursor', 'limit'])
    const limit = readNumber(parameters, 'limit', PAGE)
    const before = parameters.get('cursor')
      ? readNumber(parameters, 'cursor', { fallback: 1, max: 2_147_483_647 })
      : null
    const page = { before, limit: limit + 1 }
    const found = await deps.parts.builds.builds.listReleases(deps.callerOf(request), idOf(request), page)
    const releases = found.slice(0, limit)
    const nextCursor = found.length > limit ? String(releases.at(-1)?.version) : null
    return sendJson(reply, 200, { releases: releases.map(toReleaseRow), nextCursor })
  })
}

const find = (request: FastifyRequest, deps: BuilderDeps): Promise<ReleaseWithArtifacts> =>
  deps.parts.builds.builds.findRelease(deps.callerOf(request), idOf(request))

export function getRelease(app: FastifyInstance, deps: BuilderDeps): void {
  app.get(`${RELEASES}/:id`, READ, async (request, reply) => {
    const release = await find(request, deps)
    return sendJson(reply, 200, toReleaseView(release, await deps.parts.builds.builds.findWaiting(release.artifacts)))
  })
}

export function getReleaseLogs(app: FastifyInstance, deps: BuilderDeps): void {
  app.get(`${RELEASES}/:id/logs`, READ, async (request, reply) => {
    const parameters = readParameters(request.raw.url ?? '', ['os', 'gpu'])
    const [target] = readTargets([{ os: parameters.get('os'), gpu: parameters.get('gpu') }])
    const releaseId = idOf(request)
    const log = await deps.parts.builds.builds.readLog(deps.callerOf(request), releaseId, target)
    return sendJson(reply, 200, { releaseId, ...target, log: log.text, truncated: log.isTruncated })
  })
}

export function getReleaseManifest(app: FastifyInstance, deps: BuilderDeps): void {
  app.get(`${RELEASES}/:id/manifest`, READ, async (request, reply) => {
    const { id, buildId, version, definition, artifacts } = await find(request, deps)
    const { modelPolicy = null, partnerNodePolicy = null, customNodePolicy = null, models = [] } = definition
    const locked = artifacts.find(({ lock }) => lock !== null)?.lock ?? null
    const blobs = await deps.parts.builds.blobs.list(deps.callerOf(request), 'model')
    const expiresAt = new Date(deps.parts.clock.now().getTime() + LINK_MS)
    const told = models.map(({ type, filename, sha256 = null, sourceUri, blobId }) => {
      const known = locked?.models.find((model) => model.type === type && model.filename === filename)
      const blob = blobs.find((each) => each.id === blobId)
      const path = blobId === undefined ? null : deps.parts.builds.signRead(blobId, expiresAt)
      return {
        ...{ type, filename, sha256: known?.sha256 ?? blob?.sha256 ?? sha256 },
        sizeBytes: known?.sizeBytes ?? blob?.sizeBytes ?? null,
        downloadUrl: path === null ? (sourceUri ?? null) : deps.baseUrlOf(request) + path,
        expiresAt: path === null ? null : expiresAt.toISOString(),
      }
    })
    return sendJson(reply, 200, {
      ...{ releaseId: id, buildId, version, models: told, modelPolicy, partnerNodePolicy, customNodePolicy },
      lock: locked,
    })
  })
}

export function deleteRelease(app: FastifyInstance, deps: BuilderDeps): void {
  app.delete(`${RELEASES}/:id`, WRITE, async (request, reply) => {
    await deps.parts.builds.builds.removeRelease(deps.callerOf(request), idOf(request))
    return reply.code(204).send()
  })
}

/** Archives are not handed out: a release lies in folders of builders, and engines are started from there. */
export function downloadArtifact(app: FastifyInstance, deps: BuilderDeps): void {
  app.get(`${BUILDER_PATH}/build-artifacts/:id/download`, READ, async (request) => {
    await deps.parts.builds.builds.list(deps.callerOf(request), { after: null, limit: 1 })
    throw new BuildError('not_found', 'there is no archive to download: releases lie in folders of the builders here')
  })
}
