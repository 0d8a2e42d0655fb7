/**
 * A job as ComfyUI lists it: the five members of a queue entry, and the entry of its history. Graphs and extra data are stored
 * as JSON text and inserted as it is, so that every number keeps its digits. They hold no credential, since none is stored.
 */
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import type { Work } from '../../../../lib/waiting/turns.ts'
import type { Job, JobError } from '../../../domain/jobs/job.ts'
import type { RecordedJob } from '../../../domain/jobs/read/recorded-jobs.ts'
import type { JobStatus } from '../../../domain/jobs/transitions.ts'
import { toExceptionMessage, toExceptionType, toNodeNames, toTraceback } from '../legacy-errors.ts'
import type { ExtraDataMemory } from '../prompts/prompt-extra-data.ts'
import { toMeta, toOutputs } from './node-output.ts'

export interface PromptViewDeps {
  readonly catalog: () => NodeCatalog
  readonly extraData: Pick<ExtraDataMemory, 'merge'>
}

interface PromptParts {
  readonly number: string
  readonly workflow: string
  readonly extraData: string
  /** Asked for only where they are shown: a whole graph may have to be parsed for them. */
  readonly outputs: () => readonly string[]
}

/** A job of another surface has no number: its negated priority is shown, so that lower still runs first. */
export function toPromptParts({ job, workflow, submission }: RecordedJob, deps: PromptViewDeps): PromptParts {
  if (submission === null) {
    return {
      number: String(-job.priority || 0),
      workflow,
      extraData: JSON.stringify({ create_time: job.createdAt.getTime() }),
      outputs: () => outputNodes(workflow, deps.catalog()),
    }
  }
  return {
    number: submission.number,
    workflow: submission.wholeWorkflow ?? workflow,
    extraData: deps.extraData.merge(job.id, submission.extraData),
    outputs: () => submission.outputs,
  }
}

function outputNodes(workflow: string, catalog: NodeCatalog): string[] {
  const nodes = Object.entries(JSON.parse(workflow) as Record<string, { readonly class_type?: string }>)
  return nodes.flatMap(([id, node]) => (catalog.find(node.class_type ?? '')?.output_node === true ? [id] : []))
}

/** `[number, prompt_id, prompt, extra_data, outputs_to_execute]` as JSON text. */
export function toQueueEntry(record: RecordedJob, deps: PromptViewDeps): string {
  const { number, workflow, extraData, outputs } = toPromptParts(record, deps)
  return `[${number},${JSON.stringify(record.job.id)},${workflow},${extraData},${JSON.stringify(outputs())}]`
}

/** In steps: the texts of a record are read on first use, and a graph or a run may be long. */
export function* historyEntrySteps(record: RecordedJob, deps: PromptViewDeps): Work<string> {
  const { run } = record
  yield
  const prompt = toQueueEntry(record, deps)
  yield
  const outputs = JSON.stringify(toOutputs(run))
  yield
  const meta = JSON.stringify(toMeta(run))
  const status = JSON.stringify(toHistoryStatus(record))
  return `{"prompt":${prompt},"outputs":${outputs},"status":${status},"meta":${meta}}`
}

/** The hosted v1's form: the prompt is an object instead of a list of five members. */
export function toHistoryV2Entry(
  record: RecordedJob,
  deps: PromptViewDeps,
  options: { readonly isListed: boolean },
): string {
  const { number, workflow, extraData, outputs } = toPromptParts(record, deps)
  const { job, run } = record
  const id = JSON.stringify(job.id)
  const rest = JSON.stringify({ outputs: toOutputs(run), status: toHistoryStatus(record), meta: toMeta(run) }).slice(1)
  if (!options.isListed) {
    const asked = JSON.stringify(outputs())
    return `{"prompt":{"priority":${number},"prompt_id":${id},"prompt":${workflow},"extra_data":${extraData},"outputs_to_execute":${asked}},${rest}`
  }
  const workflowId = record.submission?.workflowId ?? null
  const head = `"prompt_id":${id},"create_time":${job.createdAt.getTime()},"workflow_id":${JSON.stringify(workflowId)}`
  return `{${head},"prompt":{"priority":${number},"prompt_id":${id},"extra_data":${extraData}},${rest}`
}

export function toHistoryStatus(record: RecordedJob): object {
  const isSuccess = record.job.status === 'succeeded'
  return { status_str: isSuccess ? 'success' : 'error', completed: isSuccess, messages: toMessages(record) }
}

function toMessages(record: RecordedJob): readonly (readonly [type: string, data: object])[] {
  const { job, run } = record
  const prompt_id = job.id
  const startedAtMs = run?.startedAtMs ?? job.startedAt?.getTime() ?? job.createdAt.getTime()
  const cached = run?.cached ?? { nodeIds: [], atMs: startedAtMs }
  return [
    ['execution_start', { prompt_id, timestamp: startedAtMs }],
    ['execution_cached', { nodes: cached.nodeIds, prompt_id, timestamp: cached.atMs }],
    toLastMessage(record),
  ]
}

function toLastMessage(record: RecordedJob): readonly [type: string, data: object] {
  const { job, run } = record
  const timestamp = endOf(record)
  if (job.status === 'succeeded') return ['execution_success', { prompt_id: job.id, timestamp }]
  const failure = toExecutionError(record)
  if (failure !== null) return ['execution_error', failure]
  const { nodeId = null, classType = null } = run?.stoppedAt ?? {}
  return [
    'execution_interrupted',
    { prompt_id: job.id, ...toNodeNames(nodeId, classType), executed: run?.executed ?? [], timestamp },
  ]
}

function endOf({ job, run }: RecordedJob): number {
  return run?.endedAtMs ?? job.completedAt?.getTime() ?? job.createdAt.getTime()
}

const UNKNOWN_ERROR: JobError = {
  code: 'internal_error',
  message: 'the run failed for a reason that was not recorded',
  nodeId: null,
  classType: null,
  traceback: null,
}

const EXPIRED_ERROR: JobError = {
  ...UNKNOWN_ERROR,
  code: 'expired',
  message: 'the job did not end before its retention was over',
}

/** null for a job that did not fail. To clients of this surface an expired job has failed. */
export function failureOf({ status, error }: Job): JobError | null {
  if (status === 'expired') return EXPIRED_ERROR
  return status === 'failed' ? (error ?? UNKNOWN_ERROR) : null
}

export function toExecutionError(record: RecordedJob): object | null {
  const { job, run } = record
  const error = failureOf(job)
  if (error === null) return null
  return {
    prompt_id: job.id,
    ...toNodeNames(error.nodeId, error.classType),
    executed: run?.executed ?? [],
    exception_message: toExceptionMessage(error.message),
    exception_type: toExceptionType(error, run?.failure?.exceptionType ?? null),
    traceback: toTraceback(error.traceback),
    current_inputs: run?.failure?.currentInputs ?? {},
    current_outputs: run?.failure?.currentOutputs ?? [],
    timestamp: endOf(record),
  }
}

/**
 * The status words of this surface, derived from the status of a job. There are two vocabularies: the words of the status
 * route, of which exactly five are final, and the five groups of the job list.
 */
type StatusWord =
  | 'submitted'
  | 'queued_limited'
  | 'queued_waiting'
  | 'preparing'
  | 'executing'
  | 'cancel_requested'
  | 'success'
  | 'error'
  | 'non_retryable_error'
  | 'lost'
  | 'cancelled'

export const GROUP_WORDS = ['pending', 'in_progress', 'completed', 'failed', 'cancelled'] as const
export type GroupWord = (typeof GROUP_WORDS)[number]

interface StatusFacts {
  readonly now: Date
  /** The account runs as many jobs as it may. */
  readonly isAtLimit: boolean
}

// The first moment after a submit, before the queue has had a chance to look at the job.
const JUST_ACCEPTED_MS = 1000

export function toStatusWord(job: Job, facts: StatusFacts): StatusWord {
  return WORD[job.status](job, facts)
}

const WORD: Readonly<Record<JobStatus, (job: Job, facts: StatusFacts) => StatusWord>> = {
  queued: toQueuedWord,
  // Progress comes with the engine's first event.
  running: (job) => (job.progress === null ? 'preparing' : 'executing'),
  canceling: () => 'cancel_requested',
  succeeded: () => 'success',
  canceled: () => 'cancelled',
  failed: ({ error }) => toFailedWord(error),
  // A final word, so that clients stop polling a job that did not end in time.
  expired: () => 'lost',
}

function toQueuedWord(job: Job, { now, isAtLimit }: StatusFacts): StatusWord {
  if (job.attempt === 0 && now.getTime() - job.createdAt.getTime() < JUST_ACCEPTED_MS) return 'submitted'
  return isAtLimit ? 'queued_limited' : 'queued_waiting'
}

/** The worker or its engine was lost: what became of the run is unknown. */
const LOST_CODES: ReadonlySet<string> = new Set(['worker_lost', 'engine_lost'])
/** The workflow or its inputs are at fault: the same prompt fails again. */
const FINAL_CODES: ReadonlySet<string> = new Set([
  'invalid_workflow',
  'validation_failed',
  'engine_rejected',
  'missing_node_type',
  'missing_node_class',
  'missing_model',
  'missing_weights',
  'missing_asset',
  'input_too_large',
  'too_many_outputs',
  'output_too_large',
])

function toFailedWord(error: JobError | null): StatusWord {
  if (error !== null && LOST_CODES.has(error.code)) return 'lost'
  return error !== null && FINAL_CODES.has(error.code) ? 'non_retryable_error' : 'error'
}

const GROUP: Readonly<Record<JobStatus, GroupWord>> = {
  queued: 'pending',
  running: 'in_progress',
  canceling: 'in_progress',
  succeeded: 'completed',
  failed: 'failed',
  canceled: 'cancelled',
  expired: 'failed',
}

export function toGroupWord(job: Job): GroupWord {
  return GROUP[job.status]
}

/** The statuses of a group; expired jobs are in none, because lists do not show them. */
export function statesOfGroup(group: GroupWord): readonly JobStatus[] {
  return (Object.keys(GROUP) as JobStatus[]).filter((status) => GROUP[status] === group && status !== 'expired')
}
