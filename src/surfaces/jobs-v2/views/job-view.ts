/** Jobs, assets and their links in the words of the wire: every required key present, dates as UTC text with milliseconds. Pure. */

import type { Clock } from '../../../../lib/clock.ts'
import { finishNow, type Work } from '../../../../lib/waiting/turns.ts'
import type { Asset } from '../../../domain/assets/asset.ts'
import type { SignContentUrl } from '../../../domain/assets/signed-url.ts'
import { readCopyPool } from '../../../domain/engine/copy-pool.ts'
import type { Job, JobError, Output, Progress } from '../../../domain/jobs/job.ts'
import { labelOf, ownLabels, readRunLabels } from '../../../domain/jobs/submit/job-labels.ts'

/** How this caller reached us, and where bytes are. */
export interface ViewBase extends LinkBase {
  readonly contentLinks: ContentLinks
}

/** Without its outputs: there may be thousands, which are written one by one. */
function toJobView(job: Job, base: LinkBase, linkStyle: JobLinkStyle) {
  const endpoint = readRunLabels(job.metadata)
  const copy = readCopyPool(job.pool)
  return {
    id: job.id,
    status: job.status,
    created_at: job.createdAt.toISOString(),
    started_at: job.startedAt?.toISOString() ?? null,
    completed_at: job.completedAt?.toISOString() ?? null,
    expires_at: job.expiresAt.toISOString(),
    queue_position: job.status === 'queued' ? job.queuePosition : null,
    progress: job.progress === null ? null : toProgressView(job.progress),
    outputs: [],
    error: job.error === null ? null : toJobErrorView(job.error),
    metrics: {
      queue_ms: toMs(job.createdAt, job.startedAt),
      execution_ms: toMs(job.startedAt, job.completedAt),
    },
    metadata: toMetadataView(job.metadata),
    priority: job.priority,
    outputs_reused: job.outputsReused,
    outputs_replaced: job.outputsReplaced,
    ...(job.reusedFrom !== undefined && { reused_from: job.reusedFrom }),
    ...(job.notBefore !== undefined && { not_before: job.notBefore.toISOString() }),
    ...(job.queueUntil !== undefined && { queued_until: job.queueUntil.toISOString() }),
    ...(copy !== null && { release_version: copy.releaseVersion }),
    ...(endpoint !== null && { endpoint }),
    urls: toJobUrls(job.id, base, linkStyle),
  }
}

export function toProgressView(progress: Progress) {
  return {
    value: progress.value,
    nodes_done: progress.nodesDone,
    nodes_total: progress.nodesTotal,
    current_node: progress.currentNode,
    current_node_class: progress.currentNodeClass,
    step: progress.step,
    steps: progress.steps,
    message: progress.message,
  }
}

/** The content stays as long as the job is kept: no address outlives that. */
export function toOutputText(output: Output, job: Job, base: ViewBase): string {
  const asset = { accountId: job.accountId, assetId: output.assetId, endsAt: job.expiresAt }
  const link = base.contentLinks.steady(asset, base)
  return JSON.stringify({
    node_id: output.nodeId,
    name: output.name,
    type: output.type,
    content_type: output.contentType,
    size_bytes: output.sizeBytes,
    id: output.assetId,
    hash: toWireHash(output.hash),
    url: link.url,
    url_expires_at: link.expiresAt.toISOString(),
    job_id: job.id,
  })
}

export function toJobErrorView(error: JobError) {
  return {
    code: error.code,
    message: error.message,
    node_id: error.nodeId,
    class_type: error.classType,
    traceback: error.traceback,
  }
}

/** As it was sent: a map, or one text. */
function toMetadataView(metadata: Job['metadata']): Job['metadata'] | string {
  return labelOf(metadata) ?? ownLabels(metadata)
}

function toMs(from: Date | null, to: Date | null): number | null {
  return from === null || to === null ? null : Math.max(0, to.getTime() - from.getTime())
}

/**
 * A job's answer as bytes, kept from the second time on that a snapshot is asked for: most are asked for once. Jobs are immutable,
 * so the bytes live exactly as long as the snapshot does; the last caller's base is remembered with them, because links depend on
 * it and callers hardly ever differ. Signed addresses expire: bytes that contain some are rebuilt in time. A job may have thousands
 * of outputs, each with an address to be signed, so encoding is done in steps, and the bytes are kept at once.
 */
export interface JobBytes {
  (job: Job, base: LinkBase): Buffer
  inSteps(job: Job, base: LinkBase): Work<Buffer>
  /** Made already, or made at once. */
  isQuick(job: Job, base: LinkBase): boolean
}

interface Encoded extends LinkBase {
  readonly bytes: Buffer
  readonly untilMs: number
}

interface JobBytesOptions {
  readonly contentLinks: ContentLinks
  readonly linkStyle: JobLinkStyle
  readonly clock: Clock
}

const STEP_OUTPUTS = 100
const NO_OUTPUTS = '"outputs":[]'

export function createJobBytes({ contentLinks, linkStyle, clock }: JobBytesOptions): JobBytes {
  const encoded = new WeakMap<Job, Encoded>()
  const askedFor = new WeakSet<Job>()
  const isCurrent = (untilMs: number) => untilMs === Number.POSITIVE_INFINITY || clock.now().getTime() < untilMs

  function find(job: Job, { origin, mountPrefix }: LinkBase): Buffer | null {
    const known = encoded.get(job)
    const isSame = known?.origin === origin && known.mountPrefix === mountPrefix && isCurrent(known.untilMs)
    return isSame ? known.bytes : null
  }

  function* inSteps(job: Job, base: LinkBase): Work<Buffer> {
    const known = find(job, base)
    if (known !== null) return known
    const { origin, mountPrefix } = base
    const untilMs = job.outputs.length === 0 ? Number.POSITIVE_INFINITY : contentLinks.steadyUntilMs()
    const bytes = yield* encode(job, { origin, mountPrefix, contentLinks }, linkStyle)
    if (askedFor.has(job) || job.outputs.length > STEP_OUTPUTS)
      encoded.set(job, { origin, mountPrefix, bytes, untilMs })
    else askedFor.add(job)
    return bytes
  }

  const jobBytes = (job: Job, base: LinkBase) => find(job, base) ?? finishNow(inSteps(job, base))
  return Object.assign(jobBytes, {
    inSteps,
    isQuick: (job: Job, base: LinkBase) => job.outputs.length <= STEP_OUTPUTS || find(job, base) !== null,
  })
}

function* encode(job: Job, base: ViewBase, linkStyle: JobLinkStyle): Work<Buffer> {
  const text = JSON.stringify(toJobView(job, base, linkStyle))
  if (job.outputs.length === 0) return Buffer.from(text)
  const pieces: string[] = []
  for (const [index, output] of job.outputs.entries()) {
    pieces.push(toOutputText(output, job, base))
    if (index % STEP_OUTPUTS === STEP_OUTPUTS - 1) yield
  }
  // The first match is the member itself: within a text before it the quotes would be escaped.
  const at = text.indexOf(NO_OUTPUTS) + NO_OUTPUTS.length - 1
  return Buffer.from(`${text.slice(0, at)}${pieces.join(',')}${text.slice(at)}`)
}

// An asset in the words of the wire, and the wire's spelling of a hash. Pure.

const WIRE_HASH = /^blake3:([0-9a-f]{64})$/i

/** `created_new` belongs to the answers that create; records of uploads have no `job_id`. */
export function toAssetView(asset: Asset, link: ContentLink, options: { readonly createdNew?: boolean } = {}) {
  return {
    id: asset.id,
    hash: toWireHash(asset.hash),
    size_bytes: asset.sizeBytes,
    content_type: asset.contentType,
    file_path: asset.filePath,
    created_at: asset.createdAt.toISOString(),
    expires_at: asset.expiresAt?.toISOString() ?? null,
    url: link.url,
    url_expires_at: link.expiresAt.toISOString(),
    ...(asset.jobId !== null && { job_id: asset.jobId }),
    ...(options.createdNew !== undefined && { created_new: options.createdNew }),
  }
}

/** What a link to the content of a record needs to know of it. */
export function toLinked({ id, accountId, expiresAt }: Asset): LinkedAsset {
  return { assetId: id, accountId, endsAt: expiresAt }
}

function toWireHash(hash: string): string {
  return `blake3:${hash}`
}

/** Plain lower-case hex, or null when the text is not a hash. The router has already undone `%3A`. */
export function readWireHash(text: string): string | null {
  return WIRE_HASH.exec(text)?.[1]?.toLowerCase() ?? null
}

/**
 * Where things are. Job links are host-relative and begin with the mount prefix, unless a setting says otherwise. Content URLs
 * are absolute: the local kind points at its own content operation; where many accounts share the service an address is
 * signed, carries its own authorisation and works for a bounded time.
 */
export interface LinkBase {
  /** Scheme and authority, without a trailing slash. */
  readonly origin: string
  /** '' or '/some/prefix'. */
  readonly mountPrefix: string
}

interface JobUrls {
  readonly self: string
  readonly events: string
  readonly cancel: string
  readonly logs: string
}

export interface JobLinkStyle {
  readonly isAbsolute: boolean
}

export const API_PATH = '/api/v2'

function toJobUrls(jobId: string, { origin, mountPrefix }: LinkBase, { isAbsolute }: JobLinkStyle): JobUrls {
  const self = `${isAbsolute ? origin : ''}${mountPrefix}${API_PATH}/jobs/${jobId}`
  return { self, events: `${self}/events`, cancel: `${self}/cancel`, logs: `${self}/logs` }
}

function toContentUrl(assetId: string, { origin, mountPrefix }: LinkBase): string {
  return `${origin}${mountPrefix}${API_PATH}/assets/${assetId}/content`
}

interface LinkedAsset {
  readonly accountId: string
  readonly assetId: string
  /** When the asset itself goes; null: never by itself. */
  readonly endsAt: Date | null
}

interface ContentLink {
  /** Absolute. */
  readonly url: string
  readonly expiresAt: Date
}

export interface ContentLinks {
  readonly areSigned: boolean
  /** With its full life before it. */
  fresh(asset: LinkedAsset, base: LinkBase): ContentLink
  /** The same text until `steadyUntilMs`, so that answers which hold it can be kept; most of its life is before it. */
  steady(asset: LinkedAsset, base: LinkBase): ContentLink
  /** Milliseconds since 1970; infinite when addresses do not depend on the time. */
  steadyUntilMs(): number
}

// For records that never end; the address works on, and clients ask again by then.
const UNSIGNED_LIFETIME_MS = 24 * 60 * 60 * 1000
const SECOND_MS = 1000
// A cached answer is rebuilt this often within the life of an address.
const RENEWALS = 4

export function createDirectLinks(clock: Clock): ContentLinks {
  function link({ assetId, endsAt }: LinkedAsset, base: LinkBase): ContentLink {
    const expiresAt = endsAt ?? new Date(clock.now().getTime() + UNSIGNED_LIFETIME_MS)
    return { url: toContentUrl(assetId, base), expiresAt }
  }
  return { areSigned: false, fresh: link, steady: link, steadyUntilMs: () => Number.POSITIVE_INFINITY }
}

interface SignedLinksOptions {
  readonly sign: SignContentUrl
  readonly lifetimeMs: number
  readonly clock: Clock
}

export function createSignedLinks({ sign, lifetimeMs, clock }: SignedLinksOptions): ContentLinks {
  const periodMs = Math.max(SECOND_MS, lifetimeMs / RENEWALS)
  const periodOf = (nowMs: number) => Math.floor(nowMs / periodMs)

  function linkFrom(signedAtMs: number, asset: LinkedAsset, base: LinkBase): ContentLink {
    const { accountId, assetId, endsAt } = asset
    const ends = Math.min(signedAtMs + lifetimeMs, endsAt?.getTime() ?? Number.POSITIVE_INFINITY)
    // Addresses count whole seconds.
    const expiresAt = new Date(Math.floor(ends / SECOND_MS) * SECOND_MS)
    const path = sign({ accountId, assetId, expiresAt, signedAt: new Date(signedAtMs) })
    return { url: `${base.origin}${base.mountPrefix}${path}`, expiresAt }
  }

  return {
    areSigned: true,
    fresh: (asset, base) => linkFrom(clock.now().getTime(), asset, base),
    steady: (asset, base) => linkFrom(periodOf(clock.now().getTime()) * periodMs, asset, base),
    steadyUntilMs: () => (periodOf(clock.now().getTime()) + 1) * periodMs,
  }
}
