/** What a definition may refer to here, and definitions from what people have already. */
import type { FastifyInstance } from 'fastify'
import { targetText } from '../../../domain/environments/definition.ts'
import { sendJson } from '../../kit/request.ts'
import { BUILDER_PATH, type BuilderDeps, READ, readBody } from '../builder-operation.ts'

export function listBaseImages(app: FastifyInstance, deps: BuilderDeps): void {
  app.get(`${BUILDER_PATH}/base-images`, READ, async (request, reply) => {
    const builders = await deps.parts.builds.builds.builders(deps.callerOf(request))
    const images = new Map(builders.flatMap(({ baseImages }) => baseImages.map((image) => [image.id, image])))
    return sendJson(reply, 200, { baseImages: [...images.values()] })
  })
}

const SYSTEM = { linux: 'Linux', darwin: 'macOS', windows: 'Windows' } as const
const CARD = { nvidia: 'NVIDIA', amd: 'AMD', apple: 'Apple', cpu: 'processor only' } as const

export function listBuildTargets(app: FastifyInstance, deps: BuilderDeps): void {
  app.get(`${BUILDER_PATH}/build-targets`, READ, async (request, reply) => {
    const builders = await deps.parts.builds.builds.builders(deps.callerOf(request))
    const targets = new Map(
      builders.flatMap((builder) => builder.targets.map((target) => [targetText(target), target])),
    )
    const rows = [...targets.values()].map(({ os, gpu }) => ({
      target: { os, gpu },
      label: `${SYSTEM[os]}, ${CARD[gpu]}`,
    }))
    return sendJson(reply, 200, { targets: rows })
  })
}

export function listModelDirectories(app: FastifyInstance, deps: BuilderDeps): void {
  app.get(`${BUILDER_PATH}/model-directories`, READ, async (request, reply) =>
    sendJson(reply, 200, { directories: await deps.parts.builds.resolve.directories(deps.callerOf(request)) }),
  )
}

export function resolveModels(app: FastifyInstance, deps: BuilderDeps): void {
  app.post(`${BUILDER_PATH}/models/resolve`, READ, async (request, reply) => {
    const { filenames } = await readBody<{ readonly filenames: readonly string[] }>(request, 'ModelsRequest', deps)
    const results = await deps.parts.builds.resolve.models(deps.callerOf(request), filenames)
    return sendJson(reply, 200, { results })
  })
}

export function resolveSnapshot(app: FastifyInstance, deps: BuilderDeps): void {
  app.post(`${BUILDER_PATH}/snapshots/resolve`, READ, async (request, reply) => {
    const { snapshot } = await readBody<{ readonly snapshot: unknown }>(request, 'SnapshotRequest', deps)
    return sendJson(reply, 200, { ...(await deps.parts.builds.resolve.snapshot(deps.callerOf(request), snapshot)) })
  })
}

export function resolveWorkflow(app: FastifyInstance, deps: BuilderDeps): void {
  app.post(`${BUILDER_PATH}/workflows/resolve`, READ, async (request, reply) => {
    const { workflow } = await readBody<{ readonly workflow: unknown }>(request, 'WorkflowRequest', deps)
    return sendJson(reply, 200, { ...(await deps.parts.builds.resolve.workflow(deps.callerOf(request), workflow)) })
  })
}
