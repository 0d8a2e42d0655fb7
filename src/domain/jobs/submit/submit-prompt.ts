/**
 * A submit in ComfyUI's terms: the caller may choose the id, ask for some of the outputs only, and get a job although a part
 * of the graph cannot run. That part is not executed and is reported in `nodeErrors`. It goes through the same submit,
 * so the job is one like any other.
 */

import { pruneGraph, writeGraphSteps } from '../../../../engine/graph/graph-json.ts'
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import type { Finding, GraphRefusal } from '../../../../engine/graph/validate/validation-result.ts'
import type { JsonValue } from '../../../../lib/json/lossless-json.ts'
import type { Turns } from '../../../../lib/waiting/turns.ts'
import type { GivingRequest } from '../../assets/given-files.ts'
import { toLackRefusal, withoutUnknowns } from '../../workflows/graph-refusals.ts'
import { hasOwnJudges, type InspectWorkflow, type Placement } from '../../workflows/prepare.ts'
import type { Job, Submission } from '../job.ts'
import { EngineRefusedError, type Submit } from './submit-job.ts'

interface PromptRequest {
  readonly accountId: string
  readonly keyId?: string | null
  readonly id: string | null
  readonly workflow: JsonValue | undefined
  /** Output nodes; null: all. */
  readonly targets: readonly string[] | null
  readonly extraData: Readonly<Record<string, unknown>> | null
  readonly priority: number
  readonly submission: Omit<Submission, 'outputs' | 'wholeWorkflow'>
  /** What asks for the files that the workflow names by their address. */
  readonly giving: GivingRequest
}

export type PromptNodeErrors = GraphRefusal['nodeErrors']

export type PromptOutcome =
  | { readonly outcome: 'accepted'; readonly job: Job; readonly nodeErrors: PromptNodeErrors }
  | { readonly outcome: 'rejected'; readonly error: Finding; readonly nodeErrors: PromptNodeErrors }

/** Throws like a submit; a graph that cannot run at all is an outcome. */
export type SubmitPrompt = (request: PromptRequest) => Promise<PromptOutcome>

interface SubmitPromptDeps {
  readonly inspectWorkflow: InspectWorkflow
  readonly submit: Submit
  readonly catalog: (pool: string) => NodeCatalog
  /** In which prompts wait. */
  readonly pool: string
  readonly turns: Turns
  /** Absent: whatever the catalog has, every engine can run. */
  readonly placement?: Placement
}

export function createSubmitPrompt(deps: SubmitPromptDeps): SubmitPrompt {
  const { inspectWorkflow, submit, catalog, turns, placement, pool } = deps
  return async function submitPrompt(request) {
    const { accountId, targets, giving } = request
    const inspected = await inspectWorkflow(accountId, request.workflow, {
      pool,
      giving,
      hasFlatNames: true,
      ...(targets !== null && { targets }),
    })
    const { inputs } = inspected
    const result = placement?.isCatalogOpen(pool) === true ? withoutUnknowns(inspected.result) : inspected.result
    if (result.error !== null) return { outcome: 'rejected', error: result.error, nodeErrors: result.nodeErrors }
    const isWhole = targets === null && Object.keys(result.nodeErrors).length === 0
    const whole = await turns.run(writeGraphSteps(result.graph))
    const graph = isWhole ? result.graph : pruneGraph(result.graph, result.goodOutputs)
    const lacks = placement === undefined || placement.isCatalogOpen(pool) ? [] : placement.findLacks(graph, pool)
    if (lacks.length > 0) throw toLackRefusal(result, lacks)
    const text = isWhole ? whole : await turns.run(writeGraphSteps(graph))
    const submitted = submit({
      accountId,
      pool,
      keyId: request.keyId ?? null,
      workflow: undefined,
      extraData: request.extraData,
      metadata: {},
      priority: request.priority,
      idempotencyKey: null,
      id: request.id,
      prepared: {
        text,
        graph,
        inputs,
        needs: placement?.laneOf(graph, pool) ?? '',
        isEngineJudged: hasOwnJudges(graph, catalog(pool)),
      },
      submission: { ...request.submission, outputs: result.goodOutputs, wholeWorkflow: isWhole ? null : whole },
    })
    try {
      return { outcome: 'accepted', job: await submitted, nodeErrors: result.nodeErrors }
    } catch (error) {
      if (!(error instanceof EngineRefusedError)) throw error
      return { outcome: 'rejected', ...error.graphRefusal }
    }
  }
}
