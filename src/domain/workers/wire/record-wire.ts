/** What a run showed, on its way from a joined worker. */
import { type NodeSpan, type RunRecord, toNodeSpan, toSpanFields } from '../../jobs/run/record/run-record.ts'

type Shown = RunRecord['nodes'][number]['output']
type Failure = NonNullable<RunRecord['failure']>

export interface RecordFields {
  readonly started_at_ms: number
  readonly ended_at_ms: number
  readonly cached: { readonly node_ids: readonly string[]; readonly at_ms: number }
  readonly nodes: readonly {
    readonly node_id: string
    readonly display_node_id: string
    readonly parent_node_id: string | null
    readonly output: Shown
  }[]
  readonly executed: readonly string[]
  readonly stopped_at: { readonly node_id: string; readonly class_type: string } | null
  readonly failure: {
    readonly exception_type: string
    readonly current_inputs: Failure['currentInputs']
    readonly current_outputs: readonly string[]
  } | null
  readonly spans?: readonly SpanFields[]
  readonly are_spans_cut?: boolean
}

interface SpanFields {
  readonly node_id: string
  readonly started_at_ms: number | null
  readonly ended_at_ms: number | null
  readonly step: number | null
  readonly steps: number | null
}

export function writeRecord(record: RunRecord): RecordFields {
  const { cached, nodes, executed, stoppedAt, failure, spans, areSpansCut } = record
  return {
    started_at_ms: record.startedAtMs,
    ended_at_ms: record.endedAtMs,
    cached: { node_ids: cached.nodeIds, at_ms: cached.atMs },
    nodes: nodes.map(({ nodeId, displayNodeId, parentNodeId, output }) => ({
      ...{ node_id: nodeId, display_node_id: displayNodeId, parent_node_id: parentNodeId, output },
    })),
    executed,
    stopped_at: stoppedAt === null ? null : { node_id: stoppedAt.nodeId, class_type: stoppedAt.classType },
    failure:
      failure === null
        ? null
        : {
            exception_type: failure.exceptionType,
            current_inputs: failure.currentInputs,
            current_outputs: failure.currentOutputs,
          },
    ...(spans !== undefined && { spans: spans.map((span) => writeSpan(toNodeSpan(span))) }),
    ...(areSpansCut === true && { are_spans_cut: true }),
  }
}

export function readRecord(fields: RecordFields): RunRecord {
  const { cached, nodes, executed, stopped_at: stoppedAt, failure, spans, are_spans_cut: areSpansCut } = fields
  return {
    startedAtMs: fields.started_at_ms,
    endedAtMs: fields.ended_at_ms,
    cached: { nodeIds: cached.node_ids, atMs: cached.at_ms },
    nodes: nodes.map(({ node_id: nodeId, display_node_id: displayNodeId, parent_node_id: parentNodeId, output }) => ({
      ...{ nodeId, displayNodeId, parentNodeId, output },
    })),
    executed,
    stoppedAt: stoppedAt === null ? null : { nodeId: stoppedAt.node_id, classType: stoppedAt.class_type },
    failure:
      failure === null
        ? null
        : {
            exceptionType: failure.exception_type,
            currentInputs: failure.current_inputs,
            currentOutputs: failure.current_outputs,
          },
    ...(spans !== undefined && { spans: spans.map((span) => toSpanFields(readSpan(span))) }),
    ...(areSpansCut === true && { areSpansCut }),
  }
}

function writeSpan({ nodeId, startedAtMs, endedAtMs, step, steps }: NodeSpan): SpanFields {
  return { node_id: nodeId, started_at_ms: startedAtMs, ended_at_ms: endedAtMs, step, steps }
}

function readSpan({
  node_id: nodeId,
  started_at_ms: startedAtMs,
  ended_at_ms: endedAtMs,
  step,
  steps,
}: SpanFields): NodeSpan {
  return { nodeId, startedAtMs, endedAtMs, step, steps }
}
