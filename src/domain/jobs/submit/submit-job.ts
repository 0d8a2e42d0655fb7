/**
 * Accepts a job: validated first, then recorded durably in one transaction with its idempotency key, its credit hold and the
 * queue bound, and only then announced. Whatever is refused leaves nothing behind, so the same key may be sent again. Who may
 * submit, the body's size and the reading of its fields are the surface's business.
 */
import type { Graph } from '../../../../engine/graph/graph.ts'
import { findModelNodes } from '../../../../engine/graph/model-nodes.ts'
import type { GraphRefusal } from '../../../../engine/graph/validate/validation-result.ts'
import type { Clock } from '../../../../lib/clock.ts'
import type { NewId } from '../../../../lib/ids.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/lossless-json.ts'
import { writeJsonSteps } from '../../../../lib/json/write-json-steps.ts'
import type { TraceContext } from '../../../../lib/tracing/trace-context.ts'
import { createTurns, type Turns } from '../../../../lib/waiting/turns.ts'
import type { Asset } from '../../assets/asset.ts'
import type { GivingRequest } from '../../assets/given-files.ts'
import type { PoolPrice } from '../../credits/prices.ts'
import type { ModelWish } from '../../engine/model-port.ts'
import { invalidField, ServiceError } from '../../errors.ts'
import type { EventBus } from '../../events/event-bus.ts'
import { keyReuse, toKeyClaim } from '../../idempotency/idempotency-key.ts'
import type { RunCheck } from '../../moderation/check-run.ts'
import type { HookWish, ToHook } from '../../webhooks/job-hooks.ts'
import type { NewHook } from '../../webhooks/webhook.ts'
import { toEngineRefusal } from '../../workflows/graph-refusals.ts'
import type { Job, JobInput, Submission } from '../job.ts'
import type { JobStore, NewJob } from '../job-store.ts'
import type { RunBound } from '../limits/run-limits.ts'
import { type JobObserver, silentObserver } from '../observer.ts'
import type { Reuse, ReuseLook } from '../reuse/find-result.ts'
import type { ReuseMode, RunFacts } from '../reuse/result-key.ts'
import { type ExtraData, type ExtraDataKeeper, splitExtraDataSteps } from './extra-data-keeper.ts'
import { isOfOther, readRunLabels } from './job-labels.ts'
import { type GraphLayout, readKeptLayout, toKeptLayout, toOrigin, toRecipe } from './job-origin.ts'
import {
  type EngineVerdicts,
  type Expectation,
  insufficientCredits,
  outOfBounds,
  poolClosed,
  queueFull,
  shuttingDown,
} from './submit-refusals.ts'
import { mustBePriority, type QueueTimes, toQueueTimes } from './submit-times.ts'

export interface SubmitRequest extends QueueTimes {
  readonly accountId: string
  /** The API key that it came with, if any. */
  readonly keyId?: string | null
  /** Left out or null: the common pool. */
  readonly pool?: string | null
  /** Asked of each pool that it would be recorded for: an update may move its deployment meanwhile. Throws why not. */
  readonly mustRunOn?: (pool: string) => void
  readonly workflow: JsonValue | undefined
  readonly extraData: ExtraData | null
  readonly metadata: Readonly<Record<string, string>>
  readonly priority: number
  readonly idempotencyKey: string | null
  /** Chosen by the caller, who has checked that it is a canonical id. */
  readonly id?: string | null
  /** What asks for the files that the workflow names by their address. */
  readonly giving?: GivingRequest
  /** Files of another account that the workflow may name by their hash; left out: none. */
  readonly lent?: ReadonlyMap<string, Asset>
  /** Validated already: `workflow` is not looked at. */
  readonly prepared?: PreparedJob
  readonly submission?: Submission
  /** Where an editor had put the nodes, for a submit that does not bring what the editor sent. */
  readonly layout?: GraphLayout | null
  /** A webhook of this job; left out or null: only the webhooks of its account are called. */
  readonly webhook?: HookWish | null
  /** Whether an earlier result may answer it; left out or null: as its account says. */
  readonly reuse?: ReuseMode | null
  /** Of a call of an endpoint: its inputs as they were used, as JSON text. */
  readonly endpointInputs?: string | null
  /** What it has to fit into, beside the limits of its account. */
  readonly within?: readonly RunBound[]
  /** Left out: what its pool costs; null: nothing. */
  readonly price?: PoolPrice | null
  /** The operator's hook was asked about it already, as a call of an endpoint. */
  readonly isChecked?: boolean
}

export type Submit = (request: SubmitRequest) => Promise<Job>

/** The part of a prepared workflow that a job is made of. */
export interface PreparedJob {
  readonly text: string
  /** What the text says. */
  readonly graph: Graph
  readonly inputs: readonly JobInput[]
  /** The key of its lane. */
  readonly needs: string
  /** Some class of it has rules that only its engine knows. */
  readonly isEngineJudged?: boolean
}

/** The engine refused the graph: the job is withdrawn, as if it had never been accepted. */
export class EngineRefusedError extends ServiceError {
  readonly graphRefusal: GraphRefusal

  constructor(graphRefusal: GraphRefusal) {
    const { message, details } = toEngineRefusal(graphRefusal)
    super('invalid_workflow', message, { details: details ?? {} })
    this.graphRefusal = graphRefusal
  }
}

export interface SubmitDeps {
  readonly store: Pick<JobStore, 'submit' | 'answerAgain'>
  readonly bus: Pick<EventBus<never>, 'publishChanged' | 'publishWork'>
  readonly clock: Clock
  readonly newJobId: NewId
  readonly prepareWorkflow: (
    accountId: string,
    workflow: JsonValue | undefined,
    options: { readonly pool: string } & Pick<SubmitRequest, 'giving' | 'lent'>,
  ) => Promise<PreparedJob>
  readonly extraData: Pick<ExtraDataKeeper, 'hold' | 'forget'>
  /** Left out: every job is run. */
  readonly reuse?: Reuse
  /** Shared with all other long work on this thread; left out: its own. */
  readonly turns?: Turns
  /** Checks the address that a job brings along; left out: none may. Throws invalid_field. */
  readonly toHook?: ToHook
  readonly pool: string
  /** Throws deployment_not_ready or deployment_stopped. Asked right before the job is recorded. */
  readonly mustTakeJobs?: (pool: string) => Promise<void>
  /** The store knows that the pool is closed, though what is known here was otherwise: throws the refusal that fits. */
  readonly refuseClosedPool?: (pool: string) => Promise<void>
  /** What a job will cost this account; throws where the account may not run anything. Without it nothing costs anything. */
  readonly admit?: (accountId: string, pool: string) => PoolPrice | null
  /** Throws forbidden where the nodes that run models would be refused; without it every job may run every model. */
  readonly mustRunModels?: (wish: ModelWish) => Promise<void>
  /** Asks whether a graph may run that is no call of an endpoint; left out: nobody is asked. Throws refused_by_policy, check_unavailable. */
  readonly checkJob?: RunCheck['job']
  /** Who has to let the outputs of such a job through, as its result's key says it; left out: nobody. */
  readonly checkedBy?: (metadata: NewJob['metadata']) => string | null
  readonly retentionMs: number
  readonly retryAfterSeconds: () => number
  /** True while the process drains: new work is refused so that clients retry elsewhere or later. */
  readonly isClosing?: () => boolean
  /** Lets a submit wait for an engine's own check of the graph. Absent: what passes validation is accepted. */
  readonly engineCheck?: {
    readonly verdicts: EngineVerdicts
    /** Whether an engine that can run jobs of this lane has a free slot, or one that is about to be free; null: neither. */
    roomFor(lane: string, pool: string): 'free' | 'coming' | null
  }
  readonly observer?: JobObserver
  /** The trace that a submit belongs to; left out: tracing is off. */
  readonly currentTrace?: () => TraceContext | null
  /**
   * Called while the record is on its way to the store. A worker of this process may claim at the same moment: the store
   * keeps the order, so both become one write. The notice after the record is for everybody else.
   */
  readonly onRecording?: (pool: string) => void
}

export function createSubmit(deps: SubmitDeps): Submit {
  const { clock, newJobId, prepareWorkflow, extraData, retryAfterSeconds, isClosing, turns = createTurns() } = deps
  const { answer, record } = createRecorder(deps)

  return async function submit(request) {
    if (isClosing?.()) throw shuttingDown(retryAfterSeconds())
    mustBePriority(request.priority)
    const times = toQueueTimes(request, lifeFrom(clock.now()))
    const pool = request.pool ?? deps.pool
    const price = toPrice(request, deps.admit?.(request.accountId, pool) ?? null)
    const hook = await toJobHook(deps, request)
    const { accountId, workflow, giving, lent } = request
    const prepared = request.prepared ?? (await prepareWorkflow(accountId, workflow, { pool, giving, lent }))
    await refuseModels(deps, request, prepared.graph)
    await deps.mustTakeJobs?.(pool)
    await checkPlainJob(deps, request, prepared)
    const id = request.id ?? newJobId()
    const { createdAt, expiresAt } = lifeFrom(clock.now())
    // Held before the row is visible: a worker may claim the job before this call knows that it was recorded.
    const { credentials, notes } = await turns.run(splitExtraDataSteps(request.extraData))
    const write = (data: unknown) => turns.run(writeJsonSteps(data as JsonValue))
    const notesText = notes === null ? null : await write(notes)
    const hasCredentials = credentials !== null
    const look = await lookForResult(deps, request, { ...prepared, notes: notesText, hasCredentials, pool })
    const sealedExtraData =
      credentials === null ? null : extraData.hold(id, credentials, expiresAt, await write(credentials))
    using expected = expectVerdict(id, pool, prepared)
    try {
      const extra = {
        needsExtraData: hasCredentials,
        sealedExtraData,
        notes: notesText,
        keepsResult: look?.key != null,
      }
      const trace = deps.currentTrace?.() ?? null
      const facts = {
        id,
        pool,
        ...times,
        createdAt,
        expiresAt,
        price,
        hook,
        trace,
        layout: layoutOf(request, notes),
        ...extra,
      }
      const made = toNewJob(request, prepared, facts)
      const answered = await answer(request, made, look)
      if (answered !== null) return answered
      const job = await record(request, made)
      const refusal = (await expected?.answer()) ?? null
      if (refusal !== null) throw new EngineRefusedError(refusal)
      return job
    } catch (error) {
      if (credentials !== null) extraData.forget(id)
      throw error
    }
  }

  function lifeFrom(createdAt: Date) {
    return { createdAt, expiresAt: new Date(createdAt.getTime() + deps.retentionMs) }
  }

  function expectVerdict(jobId: string, pool: string, { isEngineJudged, needs }: PreparedJob): Expectation | null {
    const { engineCheck } = deps
    if (isEngineJudged !== true || engineCheck === undefined || engineCheck.roomFor(needs, pool) === null) return null
    return engineCheck.verdicts.expect(jobId, () => engineCheck.roomFor(needs, pool) === 'coming')
  }
}

/** `ofPool`: what its pool costs. */
export function toPrice({ price }: Pick<SubmitRequest, 'price'>, ofPool: PoolPrice | null): PoolPrice | null {
  return price === undefined ? ofPool : price
}

/** Writes a job that was accepted: with an earlier result as its end, or into the queue. */
function createRecorder(deps: SubmitDeps) {
  const { store, bus, retryAfterSeconds, observer = silentObserver } = deps

  /** The job, if an earlier result answers it. */
  async function answer(request: SubmitRequest, job: NewJob, look: ReuseLook | null): Promise<Job | null> {
    if (look === null) return null
    const found = look.key === null ? null : look.found
    if (found === null) return countLook(observer, look, false)
    const result = await store.answerAgain(job, found.again, toKeyClaim(request.idempotencyKey, job.createdAt))
    switch (result.outcome) {
      case 'answered':
        bus.publishChanged({ jobId: job.id, accountId: job.accountId, version: result.job.version, move: 'ended' })
        observer.submitted(result.job)
        observer.finished(toAnsweredEnd(job))
        countLook(observer, look, true)
        return result.job
      case 'gone':
        return countLook(observer, look, false)
      case 'key_reused':
        throw keyReuse(result.holder)
      case 'pool_closed':
        return poolClosed(deps.refuseClosedPool, job.pool)
      case 'out_of_bounds':
        throw outOfBounds(result.excess, job.createdAt, retryAfterSeconds())
    }
  }

  async function record(request: SubmitRequest, job: NewJob): Promise<Job> {
    const recorded = store.submit(job, toKeyClaim(request.idempotencyKey, job.createdAt))
    deps.onRecording?.(job.pool)
    const result = await recorded
    switch (result.outcome) {
      case 'queued':
        bus.publishChanged({ jobId: job.id, accountId: job.accountId, version: result.job.version, move: 'queued' })
        bus.publishWork(job.pool)
        observer.submitted(result.job)
        return result.job
      case 'key_reused':
        throw keyReuse(result.holder)
      case 'insufficient_credits':
        throw insufficientCredits(job.price ?? null, 1, result.budget)
      case 'id_taken':
        throw new ServiceError('invalid_field', 'there is a job with this id already; choose another one', {
          details: { field: 'id' },
        })
      case 'pool_closed':
        return poolClosed(deps.refuseClosedPool, job.pool)
      case 'out_of_bounds':
        throw outOfBounds(result.excess, job.createdAt, retryAfterSeconds())
      case 'queue_full':
        throw queueFull(retryAfterSeconds())
    }
  }

  return { answer, record }
}

/** null: earlier results must not answer this one. Those who think in ComfyUI's terms wait for the messages of a run. */
export async function lookForResult(
  { reuse, checkedBy }: Pick<SubmitDeps, 'reuse' | 'checkedBy'>,
  { accountId, submission, metadata, reuse: asked }: SubmitRequest,
  facts: RunFacts,
): Promise<ReuseLook | null> {
  if (reuse === undefined || submission !== undefined || !reuse.isWanted(accountId, asked)) return null
  return reuse.look(accountId, { ...facts, checkedBy: checkedBy?.(metadata) ?? null })
}

/** For the figures; `isAnswered`: the result was still there when it was needed. */
export function countLook(observer: JobObserver, look: ReuseLook, isAnswered: boolean): null {
  if (look.key === null) observer.reused({ outcome: 'refused', savedMs: 0 })
  else if (look.found === null || !isAnswered) observer.reused({ outcome: 'miss', savedMs: 0 })
  else observer.reused({ outcome: 'hit', savedMs: look.found.runMs })
  return null
}

export function toAnsweredEnd({ id: jobId, accountId }: NewJob) {
  return { jobId, accountId, status: 'succeeded', code: null, executionMs: null } as const
}

interface NewJobFacts
  extends Pick<
    NewJob,
    | 'id'
    | 'pool'
    | 'createdAt'
    | 'expiresAt'
    | 'price'
    | 'hook'
    | 'needsExtraData'
    | 'sealedExtraData'
    | 'notes'
    | 'keepsResult'
    | 'again'
    | 'notBefore'
    | 'queueUntil'
  > {
  readonly layout: GraphLayout | null
  readonly trace: TraceContext | null
}

export function toNewJob(
  request: SubmitRequest,
  prepared: PreparedJob,
  { layout, trace, ...facts }: NewJobFacts,
): NewJob {
  return {
    ...facts,
    accountId: request.accountId,
    priority: request.priority,
    metadata: request.metadata,
    workflow: prepared.text,
    inputs: prepared.inputs,
    needs: prepared.needs,
    // Nothing of the workflow of another account is searched for.
    recipe: isOfOther(request.metadata)
      ? toRecipe(new Map(), readRunLabels(request.metadata)?.name ?? null)
      : toRecipe(prepared.graph, workflowNameOf(request.extraData)),
    keyId: request.keyId ?? null,
    hasChosenId: request.id != null,
    ...(request.within !== undefined && request.within.length > 0 && { within: request.within }),
    submission: request.submission ?? null,
    origin: toOrigin({
      idempotencyKey: request.idempotencyKey,
      inputs: prepared.inputs,
      layout,
      trace,
      endpointInputs: request.endpointInputs ?? null,
    }),
  }
}

/** A submission keeps what its editor sent, and with it the layout. */
export function layoutOf({ submission, layout = null }: SubmitRequest, notes: JsonObject | null): GraphLayout | null {
  if (submission !== undefined) return null
  return layout === null ? readKeptLayout(notes) : toKeptLayout(layout)
}

/** Throws invalid_field where the submit brings an address that may not be called. */
export async function toJobHook(deps: Pick<SubmitDeps, 'toHook'>, request: SubmitRequest): Promise<NewHook | null> {
  return request.webhook == null ? null : mustHaveHooks(deps)(request.accountId, request.webhook)
}

/** Throws forbidden where a node of the graph runs a model that this submit may not. */
export async function refuseModels(
  { mustRunModels }: Pick<SubmitDeps, 'mustRunModels'>,
  { accountId, extraData }: SubmitRequest,
  graph: Graph,
): Promise<void> {
  if (mustRunModels === undefined) return
  const nodes = findModelNodes(graph)
  if (nodes.length > 0) await mustRunModels({ accountId, extraData, nodes })
}

/** Throws refused_by_policy, check_unavailable. Whatever else is wrong with a submit is told before somebody is asked. */
export async function checkPlainJob(
  { checkJob }: Pick<SubmitDeps, 'checkJob'>,
  { accountId, keyId = null, metadata, giving, isChecked }: SubmitRequest,
  { text, inputs }: PreparedJob,
): Promise<void> {
  if (checkJob === undefined || isChecked === true) return
  const signal = giving?.signal
  await checkJob({ accountId, keyId, metadata, workflow: text, files: inputs, ...(signal && { signal }) })
}

function mustHaveHooks({ toHook }: Pick<SubmitDeps, 'toHook'>): ToHook {
  if (toHook !== undefined) return toHook
  throw invalidField('webhook', 'is not supported here; leave it out')
}

/** What an editor calls the workflow that it sent along. */
function workflowNameOf(data: ExtraData | null): string | null {
  const info = data?.['extra_pnginfo'] as JsonValue | undefined
  const workflow = isJsonObject(info) ? info['workflow'] : null
  const name = isJsonObject(workflow) ? (workflow['name'] ?? workflow['title']) : null
  return typeof name === 'string' ? name : null
}

/** A job as it stands a moment after its submit. */
export function toQueuedJob(job: NewJob, queuePosition: number): Job {
  return {
    id: job.id,
    accountId: job.accountId,
    pool: job.pool,
    status: 'queued',
    priority: job.priority,
    metadata: job.metadata,
    createdAt: job.createdAt,
    startedAt: null,
    completedAt: null,
    expiresAt: job.expiresAt,
    queuePosition,
    progress: null,
    outputs: [],
    error: null,
    outputsReused: false,
    outputsReplaced: 0,
    ...(job.notBefore != null && { notBefore: job.notBefore }),
    ...(job.queueUntil != null && { queueUntil: job.queueUntil }),
    attempt: 0,
    version: 1,
  }
}
