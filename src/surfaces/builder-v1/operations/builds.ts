/** Builds: definitions that are edited, and never touch what was released. */
import type { FastifyInstance } from 'fastify'
import { idOf, readNumber, readParameters, sendJson } from '../../kit/request.ts'
import { toBuildRow, toBuildView } from '../build-view.ts'
import { BUILDER_PATH, type BuilderDeps, READ, readBody, WRITE } from '../builder-operation.ts'

const BUILDS = `${BUILDER_PATH}/builds`
const PAGE = { fallback: 100, max: 100 }

interface BuildBody {
  readonly name: string
  readonly description?: string | null
  readonly definition: unknown
}

interface ChangeBody {
  readonly name?: string
  readonly description?: string | null
  readonly definition: unknown
  readonly expectedUpdatedAt?: string | null
}

export function createBuild(app: FastifyInstance, deps: BuilderDeps): void {
  app.post(BUILDS, WRITE, async (request, reply) => {
    const { name, description = null, definition } = await readBody<BuildBody>(request, 'BuildRequest', deps)
    const caller = deps.callerOf(request)
    const { build, warnings } = await deps.parts.builds.builds.create(caller, { name, description, definition })
    return sendJson(reply, 201, { ...toBuildView(build), warnings })
  })
}

export function listBuilds(app: FastifyInstance, deps: BuilderDeps): void {
  app.get(BUILDS, READ, async (request, reply) => {
    const parameters = readParameters(request.raw.url ?? '', ['cursor', 'limit'])
    const limit = readNumber(parameters, 'limit', PAGE)
    const after = parameters.get('cursor') || null
    const found = await deps.parts.builds.builds.list(deps.callerOf(request), { after, limit: limit + 1 })
    const page = found.slice(0, limit)
    const nextCursor = found.length > limit ? (page.at(-1)?.id ?? null) : null
    return sendJson(reply, 200, { builds: page.map(toBuildRow), nextCursor })
  })
}

export function getBuild(app: FastifyInstance, deps: BuilderDeps): void {
  app.get(`${BUILDS}/:id`, READ, async (request, reply) =>
    sendJson(reply, 200, toBuildView(await deps.parts.builds.builds.find(deps.callerOf(request), idOf(request)))),
  )
}

export function changeBuild(app: FastifyInstance, deps: BuilderDeps): void {
  app.patch(`${BUILDS}/:id`, WRITE, async (request, reply) => {
    const body = await readBody<ChangeBody>(request, 'BuildChange', deps)
    const { name = null, description = null, definition, expectedUpdatedAt = null } = body
    const wish = { name, description, definition, expectedUpdatedAt }
    const { build, warnings } = await deps.parts.builds.builds.change(deps.callerOf(request), idOf(request), wish)
    return sendJson(reply, 200, { ...toBuildView(build), warnings })
  })
}

export function deleteBuild(app: FastifyInstance, deps: BuilderDeps): void {
  app.delete(`${BUILDS}/:id`, WRITE, async (request, reply) => {
    await deps.parts.builds.builds.remove(deps.callerOf(request), idOf(request))
    return reply.code(204).send()
  })
}

export function validateBuild(app: FastifyInstance, deps: BuilderDeps): void {
  app.post(`${BUILDS}/:id/validate`, READ, async (request, reply) => {
    const invalid = await deps.parts.builds.builds.validate(deps.callerOf(request), idOf(request))
    return sendJson(reply, 200, { valid: invalid.length === 0, invalid })
  })
}
