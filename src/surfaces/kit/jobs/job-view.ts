/** One job as its page shows it, and the nodes and the layout of its workflow. */
import { writeUsd } from '../../../../lib/text/usd.ts'
import type { Asset } from '../../../domain/assets/asset.ts'
import type { NamedFiles } from '../../../domain/assets/named-files.ts'
import type { ListedEngine } from '../../../domain/engine/directory/engine-directory.ts'
import type { Job, Output } from '../../../domain/jobs/job.ts'
import type { Pause } from '../../../domain/jobs/queue/queue-store.ts'
import type { GpuUseStore } from '../../../domain/jobs/read/gpu-report.ts'
import type { RecordedJob } from '../../../domain/jobs/read/recorded-jobs.ts'
import { isOfOther } from '../../../domain/jobs/submit/job-labels.ts'
import { type JobOrigin, readTerms, shownLayout } from '../../../domain/jobs/submit/job-origin.ts'
import { toFailureSignature } from '../../../domain/jobs/summaries/failure-signature.ts'
import type { JobDetails, JobSummary } from '../../../domain/jobs/summaries/summary-store.ts'
import type { AccountStanding, EngineAvailability } from '../surface-parts.ts'
import { toPauseView } from './queue-changes.ts'

export interface NodeFacts {
  readonly classType: string
  readonly title: string | null
}

/** The nodes of a workflow by id. Numbers are not looked at, so their digits may be lost on the way. */
export function readNodes(workflow: string): ReadonlyMap<string, NodeFacts> {
  const graph = JSON.parse(workflow) as Record<string, { class_type?: unknown; _meta?: { title?: unknown } | null }>
  return new Map(
    Object.entries(graph).map(([id, node]) => {
      const title = node?._meta?.title
      return [id, { classType: String(node?.class_type ?? ''), title: typeof title === 'string' ? title : null }]
    }),
  )
}

interface OutputLinks {
  readonly mountPrefix: string
  readonly nodes: ReadonlyMap<string, NodeFacts>
}

export function toContentPath(mountPrefix: string, assetId: string): string {
  return `${mountPrefix}/api/v2/assets/${assetId}/content`
}

function toOutputView({ assetId, nodeId, name, type, contentType, sizeBytes }: Output, links: OutputLinks) {
  const node = links.nodes.get(nodeId)
  return {
    asset_id: assetId,
    node_id: nodeId,
    node_title: node?.title ?? null,
    name,
    type,
    content_type: contentType,
    size_bytes: sizeBytes,
    url: toContentPath(links.mountPrefix, assetId),
    is_saved: !/^Preview/.test(node?.classType ?? ''),
  }
}

/**
 * The attempts that ended before the job, and the present or last one, in their order. One that its worker gave back is not spent, so
 * the next one has its number in the store; here each has its own.
 */
function toAttemptViews(details: JobDetails) {
  let last = 0
  return listAttempts(details).map((attempt) => {
    last = Math.max(last + 1, attempt.number)
    return { ...attempt, number: last }
  })
}

function listAttempts({ summary, attempts }: JobDetails) {
  const earlier = attempts.map(({ number, engineId, from, to, why }) => ({
    ...{ number, engine: engineId, why },
    from: from?.toISOString() ?? null,
    to: to.toISOString(),
  }))
  if (summary.startedAt === null || summary.status === 'queued') return earlier
  const present = {
    number: summary.attempt,
    engine: summary.engineId,
    from: summary.startedAt.toISOString(),
    to: summary.completedAt?.toISOString() ?? null,
    why: summary.error?.code ?? summary.status,
  }
  return [...earlier, present]
}

function toPriceView({ held, summary }: JobDetails) {
  if (held === null) return null
  return { held_usd: writeUsd(held), charged_usd: summary.charged === null ? null : writeUsd(summary.charged) }
}

interface WaitFacts {
  readonly standing: AccountStanding
  /** Those of the job's pool. */
  readonly engines: readonly ListedEngine[]
  readonly availability: EngineAvailability
  /**
   * Whether engines are named that cannot run the job, and what is wrong with those that are away: to its operator they say what to do,
   * to others they are no business.
   */
  readonly showsUnable: boolean
  readonly estimateSeconds: number | null
  /** What keeps the account's jobs from being taken in this pool. */
  readonly pauses: readonly Pause[]
  readonly now: Date
}

/** Why a job waits; null for one that does not. */
export function toWaitView({ summary, terms }: JobDetails, facts: WaitFacts) {
  const { standing, engines, availability, showsUnable, pauses, now } = facts
  if (summary.status !== 'queued') return null
  const needs = readTerms(terms ?? '')
  const views = engines.map((engine) => {
    const view = toEngineView(engine, needs, availability)
    return showsUnable && view.is_able ? { ...view, why_not: whyAway(engine) ?? view.why_not } : view
  })
  const { running, maxRunning } = standing
  const isHeld = summary.notBefore !== null && summary.notBefore > now
  const isAtLimit = maxRunning !== null && running >= maxRunning
  return {
    position: summary.queuePosition,
    reason: pauses.length > 0 ? 'paused' : isHeld ? 'held' : isAtLimit ? 'account_limit' : reasonOf(views),
    pauses: pauses.map(toPauseView),
    held_until: isHeld ? (summary.notBefore?.toISOString() ?? null) : null,
    needs,
    engines: showsUnable ? views : views.filter((engine) => engine.is_able),
    limit: maxRunning === null ? null : { running, max_running: maxRunning },
    // Nobody knows when a pause ends.
    estimate_seconds: pauses.length > 0 || isHeld ? null : facts.estimateSeconds,
  }
}

/** How many jobs like this one can run at once: places of engines that can run it now, within the limit of the account. */
export function countSlots(
  { terms }: JobDetails,
  { engines, availability, standing }: Pick<WaitFacts, 'standing' | 'engines' | 'availability'>,
): number {
  const needs = readTerms(terms ?? '')
  return countPlaces(
    engines.map((engine) => toEngineView(engine, needs, availability)),
    standing.maxRunning,
  )
}

export function countPlaces(engines: readonly EngineView[], maxRunning: number | null): number {
  const places = engines
    .filter(({ is_able: isAble, state }) => isAble && state === 'ready')
    .reduce((sum, { slots }) => sum + slots, 0)
  return Math.min(places, maxRunning ?? places)
}

/** The files that the graph names. One whose record is gone has no address any more. */
function toInputViews(inputs: JobOrigin['inputs'], assets: ReadonlyMap<string, Asset>, mountPrefix: string) {
  return inputs.map(({ name, hash, sizeBytes, contentType }) => {
    const asset = assets.get(hash)
    return {
      // A reference to an asset stands in the graph as a name made of its hash, which tells a person nothing.
      name: name.startsWith(hash) ? (asset?.filePath ?? name) : name,
      size_bytes: sizeBytes,
      content_type: contentType,
      asset_id: asset?.id ?? null,
      url: asset === undefined ? null : toContentPath(mountPrefix, asset.id),
    }
  })
}

export type EngineView = ReturnType<typeof toEngineView>

export function toEngineView(
  { id, state, running, concurrency }: ListedEngine,
  needs: ReturnType<typeof readTerms>,
  { classes, weights }: EngineAvailability,
) {
  // What no engine says anything about, such as a file of the caller, is no reason against one.
  const lacks = (name: string, known: ReadonlyMap<string, readonly string[]>) => known.get(name)?.includes(id) === false
  const missing =
    needs.classes.find((name) => lacks(name, classes)) ?? needs.weights.find((name) => lacks(name, weights)) ?? null
  const isAble = missing === null
  const whyNot = !isAble ? `lacks ${missing}` : state !== 'ready' ? state : running >= concurrency ? 'busy' : null
  return { id, state, is_able: isAble, running, slots: concurrency, why_not: whyNot }
}

/** Why an engine gets nothing just now, as its operator may read it. */
function whyAway({ state, reason, lastError }: ListedEngine): string | null {
  if (state === 'ready') return null
  const why = reason ?? lastError?.message ?? null
  return why === null ? null : `${state}: ${why}`
}

function reasonOf(engines: readonly EngineView[]): string {
  const able = engines.filter((engine) => engine.is_able)
  if (able.length === 0) return 'no_engine'
  const ready = able.filter(({ state }) => state === 'ready')
  if (ready.length === 0) return 'engines_away'
  return ready.every(({ running, slots }) => running >= slots) ? 'engines_busy' : 'behind_others'
}

/** `othersAlike`: null: more than are counted, or they are not counted here. */
export function toErrorView({ error }: Job, othersAlike: number | null) {
  if (error === null) return null
  return {
    code: error.code,
    message: error.message,
    node_id: error.nodeId,
    class_type: error.classType,
    traceback: error.traceback,
    signature: toFailureSignature(error),
    others_alike: othersAlike,
  }
}

/** The full view of one job, the same for its owner and for the operator. */
interface DetailParts {
  readonly assets: Pick<NamedFiles, 'findManyByHash'>
  readonly mountPrefix: string
  readonly gpuOfJob: GpuUseStore['ofJob']
}

/** What stands beside the summary, the wait and the error. */
export async function toDetailView(
  details: JobDetails,
  { job, workflow, submission }: Pick<RecordedJob, 'job' | 'workflow' | 'submission'>,
  { assets, mountPrefix, gpuOfJob }: DetailParts,
) {
  const { origin } = details
  const hashes = origin.inputs.map(({ hash }) => hash)
  const [found, gpu] = await Promise.all([
    assets.findManyByHash(job.accountId, hashes),
    gpuOfJob(job.accountId, job.id),
  ])
  // What the owner of an endpoint fixed in it is lent to the run, and nothing of it is shown.
  const inputs = isOfOther(job.metadata) ? origin.inputs.filter(({ hash }) => found.has(hash)) : origin.inputs
  const nodes = readNodes(workflow)
  return {
    metadata: Object.fromEntries(Object.entries(job.metadata).filter(([key]) => key !== '')),
    client: submission?.clientId ?? null,
    batch_id: details.batchId,
    idempotency_key: origin.idempotencyKey,
    has_layout: shownLayout(submission, origin) !== null,
    inputs: toInputViews(inputs, found, mountPrefix),
    are_inputs_cut: origin.areInputsCut,
    outputs_list: job.outputs.map((output) => toOutputView(output, { mountPrefix, nodes })),
    gpu_seconds: gpu.ms / 1000,
    attempts: toAttemptViews(details),
    price: toPriceView(details),
  }
}

// A job in short, as the wire has it: at most about 400 bytes, whatever the job is like.

const MAX_PAIRS = 3
const MAX_VALUE_LENGTH = 60

export function toSummaryView(job: JobSummary) {
  const { progress, error, thumb } = job
  return {
    id: job.id,
    version: job.version,
    status: job.status,
    title: job.title,
    pool: job.pool,
    engine: job.engineId,
    priority: job.priority,
    attempt: job.attempt,
    created_at: job.createdAt.toISOString(),
    started_at: job.startedAt?.toISOString() ?? null,
    completed_at: job.completedAt?.toISOString() ?? null,
    expires_at: job.expiresAt.toISOString(),
    value: progress?.value ?? null,
    node: progress?.currentNode == null ? null : { id: progress.currentNode, class_type: progress.currentNodeClass },
    step: progress?.step ?? null,
    steps: progress?.steps ?? null,
    error:
      error === null
        ? null
        : {
            ...{ code: error.code, message: error.message, node_id: error.nodeId, class_type: error.classType },
            signature: toFailureSignature(error),
          },
    cost_usd: job.charged === null ? null : writeUsd(job.charged),
    outputs: job.outputs,
    thumb: thumb === null ? null : { asset_id: thumb.assetId, type: 'image' },
    queue_position: job.queuePosition,
    reused_from: job.reusedFrom,
    metadata: toShortMetadata(job.metadata),
  }
}

/** Without what is null: of most jobs that have ended that is a fifth of the letters. */
export function toCompactView(job: JobSummary): object {
  return Object.fromEntries(Object.entries(toSummaryView(job)).filter(([, value]) => value !== null))
}

/** The title is told already. */
function toShortMetadata(metadata: JobSummary['metadata']): Record<string, string> {
  const pairs = Object.entries(metadata).filter(([key]) => key !== '' && key !== 'name' && key !== 'title')
  // Not by assignment: a key may be called `__proto__`.
  return Object.fromEntries(pairs.slice(0, MAX_PAIRS).map(([key, value]) => [key, value.slice(0, MAX_VALUE_LENGTH)]))
}
