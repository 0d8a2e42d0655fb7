/** Reads the events of a run without a service: gives the same progress, outputs and end as a job with the same graph. */
import type { Graph } from '../../engine/graph/graph.ts'
import type { EngineEvent } from '../../engine/graph/run-event.ts'
import type { Progress } from '../domain/jobs/job.ts'
import { type OutputDraft, toOutputDraft } from '../domain/jobs/outputs/output-draft.ts'
import { applyEngineEvent, type RunOutcome, startFold, toProgress } from '../domain/jobs/run/apply-engine-event.ts'

export type LocalDraft = Pick<OutputDraft, 'name' | 'nodeId' | 'read'>
export type LocalOutcome = RunOutcome

type LocalRunStep =
  | { readonly kind: 'progress'; readonly progress: Progress }
  | { readonly kind: 'output'; readonly output: LocalDraft }
  | { readonly kind: 'ended'; readonly outcome: LocalOutcome }

export async function* readLocalRun(events: AsyncIterable<EngineEvent>, graph: Graph): AsyncGenerator<LocalRunStep> {
  let state = startFold({ graph, earlierProgress: null })
  for await (const event of events) {
    const before = state
    state = applyEngineEvent(before, event)
    if (state.progress !== before.progress) yield { kind: 'progress', progress: toProgress(state.progress) }
    for (const reported of state.fresh) {
      const output = toOutputDraft(reported, { previewOutputs: false })
      if (output !== null && output.location?.isUnlisted !== true) yield { kind: 'output', output }
    }
    if (state.outcome !== null) yield { kind: 'ended', outcome: state.outcome }
  }
}
