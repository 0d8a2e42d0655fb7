/**
 * Accepts many jobs at once: each is checked as a single submit is, then all of them are recorded in one transaction with one
 * idempotency key. The same request with the same key is answered with the batch that it made. Graphs are checked in slices, so
 * nobody else waits for them. An engine's own check of a graph is not waited for: its refusal fails the job later.
 */
import type { NewId } from '../../../../lib/ids.ts'
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  stringifyLosslessJson,
} from '../../../../lib/json/lossless-json.ts'
import { writeJsonSteps } from '../../../../lib/json/write-json-steps.ts'
import { createTurns } from '../../../../lib/waiting/turns.ts'
import type { PoolPrice } from '../../credits/prices.ts'
import { invalidField, type Refusal, ServiceError } from '../../errors.ts'
import { type IdempotencyStore, type KeyHolder, keyReuse, toKeyClaim } from '../../idempotency/idempotency-key.ts'
import type { NewHook } from '../../webhooks/webhook.ts'
import type { NewJob } from '../job-store.ts'
import { silentObserver } from '../observer.ts'
import type { ReuseLook } from '../reuse/find-result.ts'
import { type ExtraData, splitExtraDataSteps } from '../submit/extra-data-keeper.ts'
import {
  checkPlainJob,
  countLook,
  layoutOf,
  lookForResult,
  type PreparedJob,
  refuseModels,
  type SubmitDeps,
  type SubmitRequest,
  toAnsweredEnd,
  toJobHook,
  toNewJob,
  toPrice,
  toQueuedJob,
} from '../submit/submit-job.ts'
import { insufficientCredits, outOfBounds, poolClosed, queueFull, shuttingDown } from '../submit/submit-refusals.ts'
import { mustBePriority, toQueueTimes } from '../submit/submit-times.ts'
import { MAX_BATCH, type RefusedItem, type StoredBatch } from './batch.ts'
import type { BatchOutcome, BatchStore } from './batch-store.ts'

/** One item; throws what is wrong with its fields. */
export type ReadItem = () => Pick<
  SubmitRequest,
  | ('workflow' | 'extraData' | 'metadata' | 'priority' | 'webhook' | 'reuse' | 'endpointInputs' | 'isChecked' | 'lent')
  | ('notBefore' | 'expiresQueuedAfterSeconds')
>

interface BatchRequest
  extends Pick<
    SubmitRequest,
    'accountId' | 'keyId' | 'pool' | 'mustRunOn' | 'idempotencyKey' | 'giving' | 'within' | 'price'
  > {
  /** Of the whole request: tells a repetition from another request with the same key. */
  readonly digest: string
  /** What is said of an item that cannot be accepted; left out: what the checks say. */
  readonly tell?: (error: unknown) => unknown
  /** All of them or none. */
  readonly isWhole: boolean
  readonly items: readonly ReadItem[]
  /** Where the items are one graph with changes: the changes of each; null: each has a graph of its own. */
  readonly changes: readonly Change[] | null
}

export type SubmitBatch = (request: BatchRequest) => Promise<StoredBatch>

/** Some, or all, of the items cannot be accepted, and so nothing was. */
export class BatchRefusedError extends ServiceError {
  readonly items: readonly RefusedItem[]

  constructor(items: readonly RefusedItem[], total: number) {
    const [first] = items
    const message = `${items.length} of ${total} jobs cannot be accepted, so none was; job ${first?.index}: ${first?.message}`
    super('batch_refused', message)
    this.items = items
  }
}

interface SubmitBatchDeps extends Omit<SubmitDeps, 'store' | 'engineCheck'> {
  readonly store: BatchStore
  readonly keys: Pick<IdempotencyStore, 'findKey'>
  readonly newBatchId: NewId
}

/** Refusals that are about the service, so they refuse the whole batch and not one item. */
const OF_ALL: ReadonlySet<Refusal> = new Set([
  ...(['store_unavailable', 'storage_full', 'overloaded', 'shutting_down', 'check_unavailable'] as const),
])
// The length of all graphs together, which are held in memory until they are written.
const MAX_LENGTH = 64 * 1024 * 1024
// How many items are checked at a time: looking up their files waits for the store.
const AT_ONCE = 8

interface ReadyItem {
  readonly index: number
  readonly request: SubmitRequest
  readonly prepared: PreparedJob
  readonly hook: NewHook | null
  readonly times: ReturnType<typeof toQueueTimes>
}

interface MadeJob {
  readonly index: number
  readonly job: NewJob
  readonly look: ReuseLook | null
}

export function createSubmitBatch(deps: SubmitBatchDeps): SubmitBatch {
  const { store, keys, bus, clock, extraData, retryAfterSeconds } = deps
  const checkItems = createCheckItems(deps)
  const makeJobs = createMakeJobs(deps)

  return async function submitBatch(request) {
    const { accountId, idempotencyKey } = request
    const holder = idempotencyKey === null ? null : await keys.findKey(accountId, idempotencyKey, clock.now())
    if (holder !== null) return findRepeated(deps, request, holder)
    if (deps.isClosing?.()) throw shuttingDown(retryAfterSeconds())
    const pool = request.pool ?? deps.pool
    const price = toPrice(request, deps.admit?.(accountId, pool) ?? null)
    const { ready, refused } = await checkItems(request, pool)
    if (refused.length > 0 && (request.isWhole || ready.length === 0))
      throw new BatchRefusedError(refused, request.items.length)
    await deps.mustTakeJobs?.(pool)
    const jobs = await makeJobs(ready, { pool, price })
    try {
      return await record(request, { pool, price, refused, jobs })
    } catch (error) {
      for (const { job } of jobs) if (job.needsExtraData) extraData.forget(job.id)
      throw error
    }
  }

  async function record(
    request: BatchRequest,
    made: {
      readonly pool: string
      readonly price: PoolPrice | null
      readonly refused: readonly RefusedItem[]
      readonly jobs: readonly MadeJob[]
    },
  ): Promise<StoredBatch> {
    const { accountId, isWhole, digest } = request
    const { pool, price, refused, jobs } = made
    const id = deps.newBatchId()
    const total = request.items.length
    const { createdAt, expiresAt } = jobs[0]!.job
    const kept = refused.map(withoutLongDetails)
    const recorded = store.submit(
      { id, isWhole, digest, total, jobs, refused: kept },
      toKeyClaim(request.idempotencyKey, createdAt),
    )
    deps.onRecording?.(pool)
    const result = await recorded
    switch (result.outcome) {
      case 'queued':
        break
      case 'key_reused':
        return findRepeated(deps, request, result.holder)
      case 'pool_closed':
        return poolClosed(deps.refuseClosedPool, pool)
      case 'run_limit':
      case 'spend_limit':
      case 'queue_full':
      case 'insufficient_credits':
        throw toLimitRefusal(result, { jobs: jobs.length, price, createdAt }, retryAfterSeconds())
    }
    const accepted = jobs.slice(0, result.accepted)
    for (const { job } of jobs.slice(result.accepted)) if (job.needsExtraData) extraData.forget(job.id)
    const answered = new Set(result.answered ?? [])
    tellAccepted(deps, accepted, answered)
    bus.publishWork(pool)
    const jobIds: (string | null)[] = Array.from({ length: total }, () => null)
    for (const { index, job } of accepted) jobIds[index] = job.id
    return {
      ...{ id, accountId, pool, createdAt, expiresAt, isWhole, digest, jobIds, refused: kept },
      limitedBy: result.limitedBy,
      states: new Map(
        accepted.map(({ job }) => [job.id, { status: answered.has(job.id) ? 'succeeded' : 'queued', progress: null }]),
      ),
    }
  }
}

function tellAccepted(
  { bus, observer = silentObserver }: SubmitBatchDeps,
  accepted: readonly MadeJob[],
  answered: ReadonlySet<string>,
): void {
  for (const { job, look } of accepted) {
    const isAnswered = answered.has(job.id)
    // The end is the second version.
    const change = isAnswered ? ({ version: 2, move: 'ended' } as const) : ({ version: 1, move: 'queued' } as const)
    bus.publishChanged({ jobId: job.id, accountId: job.accountId, ...change })
    observer.submitted(toQueuedJob(job, 1))
    if (isAnswered) observer.finished(toAnsweredEnd(job))
    if (look !== null) countLook(observer, look, isAnswered)
  }
}

async function findRepeated(
  { store, clock }: SubmitBatchDeps,
  { accountId, digest }: BatchRequest,
  holder: KeyHolder,
): Promise<StoredBatch> {
  const { batchId = null } = holder
  const batch = batchId === null ? null : await store.find(accountId, batchId, clock.now())
  if (batch === null || batch.digest !== digest) throw keyReuse(holder)
  return batch
}

function createMakeJobs(deps: SubmitBatchDeps) {
  const { clock, extraData, turns = createTurns() } = deps

  async function makeJobs(
    ready: readonly ReadyItem[],
    terms: { readonly pool: string; readonly price: PoolPrice | null },
  ) {
    const createdAt = clock.now()
    const expiresAt = new Date(createdAt.getTime() + deps.retentionMs)
    const trace = deps.currentTrace?.() ?? null
    const write = (data: unknown) => turns.run(writeJsonSteps(data as JsonValue))
    // Mostly all items have the same extra data, so it is written once.
    const extraOf = remember(
      async (data: ExtraData | null) => {
        const { credentials, notes } = await turns.run(splitExtraDataSteps(data))
        const text = credentials === null ? '' : await write(credentials)
        return { credentials, notes, text, notesText: notes === null ? null : await write(notes) }
      },
      (data) => data,
    )
    const jobs: MadeJob[] = []
    try {
      for (const { index, request, prepared, hook, times } of ready) {
        const { credentials, notes, text, notesText } = await extraOf(request.extraData)
        const id = deps.newJobId()
        const sealedExtraData = credentials === null ? null : extraData.hold(id, credentials, expiresAt, text)
        const hasCredentials = credentials !== null
        const given = { ...prepared, notes: notesText, hasCredentials, pool: terms.pool }
        const look = await lookForResult(deps, request, given)
        const again = look === null || look.key === null ? null : (look.found?.again ?? null)
        const kept = { keepsResult: look?.key != null, again }
        const extra = { needsExtraData: hasCredentials, sealedExtraData, notes: notesText, ...kept }
        const layout = layoutOf(request, notes)
        const facts = { id, createdAt, expiresAt, ...times, hook, trace, layout, ...terms, ...extra }
        jobs.push({ index, job: toNewJob(request, prepared, facts), look })
      }
    } catch (error) {
      for (const { job } of jobs) extraData.forget(job.id)
      throw error
    }
    return jobs
  }

  return makeJobs
}

function createCheckItems(deps: SubmitBatchDeps) {
  async function checkItems(request: BatchRequest, pool: string) {
    const ready: ReadyItem[] = []
    const refused: RefusedItem[] = []
    const hookOf = remember(
      (wanted: SubmitRequest) => toJobHook(deps, wanted),
      ({ webhook }) => webhook ?? null,
    )
    // All items are one request.
    const giving = { known: new Map(), ...request.giving }
    let length = 0
    let least: number | null = null
    let next = 0

    async function check(index: number, read: ReadItem): Promise<void> {
      const { accountId, keyId, within } = request
      const item: SubmitRequest = { accountId, keyId, pool, within, ...read(), idempotencyKey: null }
      mustBePriority(item.priority)
      const createdAt = deps.clock.now()
      const expiresAt = new Date(createdAt.getTime() + deps.retentionMs)
      const times = toQueueTimes(item, { createdAt, expiresAt })
      const hook = await hookOf(item)
      const prepared = await deps.prepareWorkflow(accountId, item.workflow, { pool, giving, lent: item.lent })
      await refuseModels(deps, item, prepared.graph)
      await checkPlainJob(deps, item, prepared)
      length += prepared.text.length
      // What the first graph shares with all others says how long they are together, before they are made.
      least ??= request.changes === null ? 0 : commonLength(prepared, request.changes) * request.items.length
      if (Math.max(length, least) > MAX_LENGTH) throw tooLong()
      ready.push({ index, request: item, prepared, hook, times })
    }

    async function work(): Promise<void> {
      for (;;) {
        const index = next++
        const read = request.items[index]
        if (read === undefined) return
        try {
          await check(index, read)
        } catch (thrown) {
          const error = request.tell?.(thrown) ?? thrown
          if (!(error instanceof ServiceError) || error.refusal === 'payload_too_large' || OF_ALL.has(error.refusal))
            throw error
          refused.push({ index, refusal: error.refusal, message: error.message, details: error.details })
        }
      }
    }

    await Promise.all(Array.from({ length: AT_ONCE }, work))
    const byIndex = (one: { readonly index: number }, other: { readonly index: number }) => one.index - other.index
    return { ready: ready.sort(byIndex), refused: refused.sort(byIndex) }
  }

  return checkItems
}

function toLimitRefusal(
  { outcome, room, excess }: Extract<BatchOutcome, { readonly room: number }>,
  { jobs, price, createdAt }: { readonly jobs: number; readonly price: PoolPrice | null; readonly createdAt: Date },
  retryAfterSeconds: number,
): ServiceError {
  if (outcome === 'insufficient_credits') return insufficientCredits(price, jobs)
  if (excess !== undefined) {
    const { refusal, message, details, retryAfterSeconds: seconds } = outOfBounds(excess, createdAt, retryAfterSeconds)
    const told = `there is room for ${room} of these ${jobs} jobs: ${message}`
    return new ServiceError(refusal, told, {
      details: { ...details, room },
      ...(seconds !== null && { retryAfterSeconds: seconds }),
    })
  }
  const full = queueFull(retryAfterSeconds)
  const message = `the queue has room for ${room} of these ${jobs} jobs; send them again later, or fewer`
  return new ServiceError('queue_full', message, {
    details: { room },
    retryAfterSeconds: full.retryAfterSeconds ?? 1,
  })
}

/** How much of a graph no change touches, in characters. */
function commonLength({ graph, text }: PreparedJob, changes: readonly Change[]): number {
  const names = new Set(changes.flatMap((change) => Object.keys(change)))
  const changed = [...names].map((name) => {
    const [nodeId, input] = splitName((id) => graph.has(id), name) ?? ['', '']
    return stringifyLosslessJson(graph.get(nodeId)?.inputs[input] ?? null).length + input.length
  })
  return changed.reduce((rest, length) => rest - length, text.length)
}

function tooLong(): ServiceError {
  return new ServiceError(
    'payload_too_large',
    `the graphs of this batch have more than ${MAX_LENGTH} characters together; send it in parts`,
    { details: { max_length: MAX_LENGTH } },
  )
}

const MAX_DETAILS_LENGTH = 1000

/** Refusals are kept as long as their batch, so long details are dropped. */
function withoutLongDetails(item: RefusedItem): RefusedItem {
  const isShort = item.details === null || JSON.stringify(item.details).length <= MAX_DETAILS_LENGTH
  return isShort ? item : { ...item, details: null }
}

/** Remembers answers by the object that a question is about, and asks once for each. */
function remember<Question, Answer>(
  ask: (question: Question) => Promise<Answer>,
  about: (question: Question) => object | null,
): (question: Question) => Promise<Answer> {
  const known = new Map<object | null, Promise<Answer>>()
  return (question) => {
    const value = about(question)
    const answer = known.get(value) ?? ask(question)
    known.set(value, answer)
    return answer
  }
}

// One graph with changes, as many graphs: each shares with the first whatever it does not change.

/** By `<node id>.<input>`, the value that the input gets. */
export type Change = JsonObject

/** Every combination, the last name changing fastest. Throws invalid_field. */
export function multiply(product: Readonly<Record<string, readonly JsonValue[]>>): Change[] {
  const names = Object.keys(product)
  const count = names.reduce((sum, name) => sum * (product[name]?.length ?? 0), 1)
  if (count > MAX_BATCH) throw invalidField('product', `makes ${count} jobs; a batch has at most ${MAX_BATCH}`)
  return names.reduce<Change[]>(
    (changes, name) =>
      changes.flatMap((change) => (product[name] ?? []).map((value): Change => ({ ...change, [name]: value }))),
    [{}],
  )
}

/** Throws invalid_field. What is no graph stays what it is: whoever validates it says so. */
export function applyChange(workflow: JsonValue | undefined, change: Change, where: string): JsonValue | undefined {
  if (!isJsonObject(workflow)) return workflow
  const changed = new Map<string, JsonObject>()
  for (const [name, value] of Object.entries(change)) {
    const place = splitName((id) => Object.hasOwn(workflow, id) && isJsonObject(workflow[id]), name)
    if (place === null) throw unknownPlace(name, where)
    const [nodeId, input] = place
    const node = changed.get(nodeId) ?? (workflow[nodeId] as JsonObject)
    const inputs = isJsonObject(node['inputs']) ? node['inputs'] : {}
    changed.set(nodeId, { ...node, inputs: { ...inputs, [input]: value } })
  }
  return { ...workflow, ...Object.fromEntries(changed) }
}

/** Ids of nodes and names of inputs may both have dots: the first one behind an id that the graph has is the one between them. */
function splitName(hasNode: (id: string) => boolean, name: string): readonly [nodeId: string, input: string] | null {
  for (let dot = name.indexOf('.'); dot !== -1; dot = name.indexOf('.', dot + 1)) {
    const nodeId = name.slice(0, dot)
    if (dot + 1 < name.length && hasNode(nodeId)) return [nodeId, name.slice(dot + 1)]
  }
  return null
}

function unknownPlace(name: string, where: string): ServiceError {
  const shown = JSON.stringify(name.slice(0, 100))
  return invalidField(where, `has the name ${shown}, which is no <node id>.<input> of the workflow`)
}
