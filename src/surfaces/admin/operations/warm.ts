/** What an engine has to have loaded before it counts as ready: read, set, and taken back by an operator. */
import type { FastifyInstance } from 'fastify'
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import { type JsonObject, parseLosslessJson, stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import type { EngineDirectory } from '../../../domain/engine/directory/engine-directory.ts'
import type { WarmPlan } from '../../../domain/engine/warm/warm-plan.ts'
import type { WarmPlans } from '../../../domain/engine/warm/warm-plans.ts'
import { needs } from '../../kit/guards/routes.ts'
import { idOf, sendJson } from '../../kit/request.ts'
import { ADMIN_PATH, type AdminKit } from '../admin-operation.ts'

export interface WarmParts {
  readonly engines: Pick<EngineDirectory, 'find'>
  readonly warm: WarmPlans
  /** What one engine can run; null: it was never reached. */
  readonly catalogOf: (engineId: string) => NodeCatalog | null
}

type WarmDeps = WarmParts & { readonly kit: AdminKit }

interface WarmBody {
  readonly weights?: readonly string[]
  readonly workflow?: JsonObject | null
}

const ROUTE = `${ADMIN_PATH}/engines/:id/warm`

function toText(plan: WarmPlan | null): string {
  const workflow = plan?.workflow == null ? null : parseLosslessJson(plan.workflow)
  return stringifyLosslessJson({ weights: [...(plan?.weights ?? [])], workflow })
}

export function getEngineWarm(app: FastifyInstance, { engines, warm }: WarmDeps): void {
  app.get(ROUTE, needs('operator'), async (request, reply) => {
    const { id } = engines.find(idOf(request))
    await warm.refresh()
    return sendJson(reply, 200, toText(warm.planOf(id)))
  })
}

/** Loaded at once, and from then on whenever the engine's process is a new one. */
export function putEngineWarm(app: FastifyInstance, { kit, engines, warm, catalogOf }: WarmDeps): void {
  app.put(ROUTE, needs('operator'), async (request, reply) => {
    const { id } = engines.find(idOf(request))
    const { weights = [], workflow = null } = await kit.readBody<WarmBody>(request, 'EngineWarm')
    const wish = { weights, workflow: workflow === null ? null : stringifyLosslessJson(workflow) }
    const plan = await warm.set(id, wish, catalogOf(id))
    await kit.note(request, { action: 'engine.warm', subject: id, details: { weights } })
    return sendJson(reply, 200, toText(plan))
  })
}

export function deleteEngineWarm(app: FastifyInstance, { kit, engines, warm }: WarmDeps): void {
  app.delete(ROUTE, needs('operator'), async (request, reply) => {
    const id = idOf(request)
    await warm.refresh()
    // What a server was to have that is gone can be taken back all the same.
    if (warm.planOf(id) === null) engines.find(id)
    await warm.set(id, null, null)
    await kit.note(request, { action: 'engine.warm', subject: id, details: { weights: null } })
    return sendJson(reply, 200, toText(null))
  })
}
