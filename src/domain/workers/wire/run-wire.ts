/** What a run writes, on its way from a joined worker: progress, outputs and the end. Moments are the service's, not the worker's. */
import type { JobError, JobLog, Output, OutputLocation, Progress } from '../../jobs/job.ts'
import type { RunChange } from '../../jobs/job-store.ts'
import { type GpuUse, toKeptUse } from '../../jobs/run/gpu-use.ts'
import { readMarks, writeMarks } from '../../jobs/run/record/log-lines.ts'
import { type NodeSpan, type RunRecord, toNodeSpan, toSpanFields } from '../../jobs/run/record/run-record.ts'

export interface ProgressFields {
  readonly value: number
  readonly nodes_done: number
  readonly nodes_total: number
  readonly current_node: string | null
  readonly current_node_class: string | null
  readonly step: number | null
  readonly steps: number | null
  readonly message: string | null
}

export interface OutputFields {
  readonly asset_id: string
  readonly node_id: string
  readonly name: string
  readonly type: Output['type']
  readonly content_type: string
  readonly size_bytes: number
  readonly hash: string
  readonly location?: {
    readonly folder: OutputLocation['folder']
    readonly subfolder: string
    readonly is_unlisted: boolean
  }
}

/** An output with the proof that its bytes were stored under the lease. */
interface ProvenOutput extends OutputFields {
  readonly receipt: string
}

export interface ErrorFields {
  readonly code: string
  readonly message: string
  readonly node_id: string | null
  readonly class_type: string | null
  readonly traceback: string | null
}

interface LogFields {
  readonly text: string
  readonly truncated: boolean
  readonly complete: boolean
  /** By line, since when it is that node's; left out: nothing is known. */
  readonly marks?: {
    readonly total: number
    readonly marks: readonly { readonly line: number; readonly at_ms: number; readonly node_id: string | null }[]
  }
}

/** How long the answer to an end may take where outputs have to be checked first. */
export const END_MS = 90_000

type Finish = NonNullable<RunChange['finish']>

export interface ChangeFields {
  readonly progress?: ProgressFields
  readonly outputs?: readonly ProvenOutput[]
  readonly outputs_reused?: boolean
  readonly log?: LogFields
  readonly finish?: {
    readonly status: Finish['status']
    readonly from: Finish['from']
    readonly error: ErrorFields | null
    readonly record: RecordFields | null
    /** What it took of a server; left out: none computed anything of it. */
    readonly gpu?: GpuFields
  }
}

export interface GpuFields {
  readonly ms: number
  readonly classes: readonly { readonly name: string; readonly ms: number }[]
  readonly weights: readonly string[]
}

export function writeGpu(gpu: GpuUse): GpuFields {
  const { ms, classes, weights } = toKeptUse(gpu, gpu.ms)
  return { ms, weights, classes: Object.entries(classes).map(([name, took]) => ({ name, ms: took })) }
}

export function readGpu({ ms, classes, weights }: GpuFields): GpuUse {
  return { ms, weights, classes: Object.fromEntries(classes.map(({ name, ms: took }) => [name, took])) }
}

export function writeProgress(progress: Progress): ProgressFields {
  const { value, step, steps, message } = progress
  return {
    ...{ value, step, steps, message },
    nodes_done: progress.nodesDone,
    nodes_total: progress.nodesTotal,
    current_node: progress.currentNode,
    current_node_class: progress.currentNodeClass,
  }
}

/** Counts are made what readers of jobs are promised: whole, and no more nodes done than there are. */
export function readProgress(fields: ProgressFields): Progress {
  const { value, message } = fields
  return {
    ...{ value, message, step: toCount(fields.step), steps: toCount(fields.steps) },
    nodesDone: Math.min(fields.nodes_done, fields.nodes_total),
    nodesTotal: fields.nodes_total,
    currentNode: fields.current_node,
    currentNodeClass: fields.current_node_class,
  }
}

function toCount(steps: number | null): number | null {
  return steps === null ? null : Math.min(Math.max(0, Math.floor(steps)), Number.MAX_SAFE_INTEGER)
}

export function writeOutput({ name, type, hash, location, ...output }: Output): OutputFields {
  return {
    ...{ name, type, hash },
    asset_id: output.assetId,
    node_id: output.nodeId,
    content_type: output.contentType,
    size_bytes: output.sizeBytes,
    ...(location !== undefined && {
      location: { folder: location.folder, subfolder: location.subfolder, is_unlisted: location.isUnlisted },
    }),
  }
}

export function readOutput({ name, type, hash, location, ...output }: OutputFields): Output {
  return {
    ...{ name, type, hash },
    assetId: output.asset_id,
    nodeId: output.node_id,
    contentType: output.content_type,
    sizeBytes: output.size_bytes,
    ...(location !== undefined && {
      location: { folder: location.folder, subfolder: location.subfolder, isUnlisted: location.is_unlisted },
    }),
  }
}

/** `receiptOf`: for an output whose bytes were stored. */
export function writeChange(change: RunChange, receiptOf: (output: Output) => string): ChangeFields {
  const { progress, outputs, outputsReused, log, finish } = change
  return {
    ...(progress !== undefined && { progress: writeProgress(progress) }),
    ...(outputs !== undefined && {
      outputs: outputs.map((output) => ({ ...writeOutput(output), receipt: receiptOf(output) })),
    }),
    ...(outputsReused !== undefined && { outputs_reused: outputsReused }),
    ...(log !== undefined && { log: writeLog(log) }),
    ...(finish !== undefined && {
      finish: {
        status: finish.status,
        from: finish.from,
        error: finish.error === null ? null : writeError(finish.error),
        record: finish.record == null ? null : writeRecord(finish.record),
        ...(finish.gpu != null && { gpu: writeGpu(finish.gpu) }),
      },
    }),
  }
}

/** `now`: when it was received. */
export function readChange(fields: ChangeFields, now: Date): RunChange {
  const { progress, outputs, outputs_reused: outputsReused, log, finish } = fields
  return {
    ...(progress !== undefined && { progress: readProgress(progress) }),
    ...(outputs !== undefined && { outputs: outputs.map(({ receipt: _, ...output }) => readOutput(output)) }),
    ...(outputsReused !== undefined && { outputsReused }),
    ...(log !== undefined && { log: readLog(log, now) }),
    ...(finish !== undefined && {
      finish: {
        status: finish.status,
        from: finish.from,
        at: now,
        error: finish.error === null ? null : readError(finish.error),
        record: finish.record === null ? null : readRecord(finish.record),
        gpu: finish.gpu === undefined ? null : readGpu(finish.gpu),
      },
    }),
  }
}

function writeLog({ text, truncated, complete, marks = null }: JobLog): LogFields {
  if (marks === null) return { text, truncated, complete }
  const { total, marks: list } = readMarks(marks)
  const written = list.map(([line, atMs, nodeId]) => ({ line, at_ms: atMs, node_id: nodeId }))
  return { text, truncated, complete, marks: { total, marks: written } }
}

function readLog({ text, truncated, complete, marks }: LogFields, capturedAt: Date): JobLog {
  const read = marks?.marks.map(({ line, at_ms: atMs, node_id: nodeId }) => [line, atMs, nodeId] as const)
  const stored = marks === undefined || read === undefined ? null : writeMarks({ total: marks.total, marks: read })
  return { text, truncated, complete, capturedAt, marks: stored }
}

export function writeError({ code, message, nodeId, classType, traceback }: JobError): ErrorFields {
  return { code, message, node_id: nodeId, class_type: classType, traceback }
}

export function readError({ code, message, node_id: nodeId, class_type: classType, traceback }: ErrorFields): JobError {
  return { code, message, nodeId, classType, traceback }
}

/** What a run showed, on its way from a joined worker. */
type Shown = RunRecord['nodes'][number]['output']
type Failure = NonNullable<RunRecord['failure']>

interface RecordFields {
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

function writeRecord(record: RunRecord): RecordFields {
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

function readRecord(fields: RecordFields): RunRecord {
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
