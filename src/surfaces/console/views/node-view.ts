/** The nodes of a job: what each is, when it ran, and how it stands. */
import type { Job } from '../../../domain/jobs/job.ts'
import type { LiveRun } from '../../../domain/jobs/read/live-runs.ts'
import type { RecordedJob } from '../../../domain/jobs/read/recorded-jobs.ts'
import { type NodeSpan, toNodeSpan } from '../../../domain/jobs/run/record/run-record.ts'
import { isTerminal } from '../../../domain/jobs/transitions.ts'
import type { NodeFacts } from '../../kit/jobs/job-view.ts'

const MAX_NODES = 10_000

interface ShownRun {
  readonly spans: readonly NodeSpan[]
  readonly isCut: boolean
}

export function toShownRun({ run }: Pick<RecordedJob, 'run'>, live: LiveRun | null): ShownRun {
  if (live !== null) return { spans: live.nodes, isCut: live.isCut }
  return { spans: (run?.spans ?? []).map(toNodeSpan), isCut: run?.areSpansCut === true }
}

export function toNodesView(job: Job, nodes: ReadonlyMap<string, NodeFacts>, shown: ShownRun) {
  const spans = new Map(shown.spans.map((span) => [span.nodeId, span]))
  const outputs = new Map<string, number>()
  for (const { nodeId } of job.outputs) outputs.set(nodeId, (outputs.get(nodeId) ?? 0) + 1)
  const views = [...nodes].slice(0, MAX_NODES).map(([id, { classType, title }]) => {
    const span = spans.get(id) ?? null
    return {
      ...{ id, class_type: classType, title },
      state: stateOf(job, id, span),
      started_at: toTime(span?.startedAtMs),
      ended_at: toTime(span === null ? null : endOf(job, id, span)),
      step: span?.step ?? null,
      steps: span?.steps ?? null,
      outputs: outputs.get(id) ?? 0,
    }
  })
  return { nodes: views, is_cut: shown.isCut || nodes.size > MAX_NODES }
}

export function stateOf(job: Pick<Job, 'status' | 'error'>, nodeId: string, span: NodeSpan | null): string {
  const hasEnded = isTerminal(job.status)
  if (hasEnded && job.error?.nodeId === nodeId) return 'failed'
  if (span === null) return hasEnded ? 'skipped' : 'waiting'
  if (span.startedAtMs === null) return 'cached'
  if (span.endedAtMs !== null) return 'done'
  return hasEnded ? 'skipped' : 'running'
}

/** A failed node ended with its job: engines report no separate end for it. */
export function endOf(
  job: Pick<Job, 'status' | 'error' | 'completedAt'>,
  nodeId: string,
  span: NodeSpan,
): number | null {
  if (span.endedAtMs !== null || span.startedAtMs === null) return span.endedAtMs
  return stateOf(job, nodeId, span) === 'failed' ? (job.completedAt?.getTime() ?? null) : null
}

export function toTime(ms: number | null | undefined): string | null {
  return ms == null ? null : new Date(ms).toISOString()
}
