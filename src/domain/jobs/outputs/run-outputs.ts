/**
 * The part of a run that keeps what nodes report: items become drafts, drafts become stored outputs, and those go to the
 * committer in the order of their report. It can be cut off, and then outputs that are not stored yet fail.
 */

import type { ReportedFile } from '../../../../engine/graph/run-event.ts'
import { isMediaType, toBareType, typeFromName } from '../../../../lib/files/mime.ts'
import type { NewId } from '../../../../lib/ids.ts'
import type { Semaphore } from '../../../../lib/waiting/semaphore.ts'
import type { StoreBlob } from '../../assets/blob-store.ts'
import { EngineLostError } from '../../engine/engine-lost-error.ts'
import { isStoreAway, outlastOutage, ServiceError } from '../../errors.ts'
import type { Job, JobError, Output, OutputLocation, OutputType } from '../job.ts'
import type { Lease } from '../job-store.ts'
import type { Reported } from '../run/apply-engine-event.ts'
import type { Committer } from '../run/committer.ts'
import { toJsonText } from '../run/record/run-record.ts'
import type { OutputRules, RunDeps } from '../run/run-deps.ts'
import { toJobError } from '../run/run-moves.ts'

/** Why an output could not be kept. */
export interface OutputFault {
  readonly error: JobError
  /** The fault is not the job's: a later attempt, or another engine, may succeed. */
  readonly mayPass: boolean
  /** The engine could not hand it out. */
  readonly loss: EngineLostError | null
}

export interface RunOutputs {
  add(reported: readonly Reported[]): void
  /** Resolves when few enough outputs wait to be stored. */
  hasRoom(): Promise<void>
  /** Resolves when nothing is under way. */
  allStored(): Promise<void>
  /** What is still under way is given up. */
  cut(reason: string): void
  /** The run is over: the same, where as a rule nothing is under way. */
  end(): void
}

interface RunOutputsOptions {
  readonly job: Job
  readonly lease: Lease
  readonly earlier: readonly Output[]
  readonly committer: Pick<Committer, 'addOutput'>
  onFault(cause: unknown, fault: OutputFault): void
}

// One for all runs: an error that is made anew records where, which costs more than storing a short text.
const OVER = new Error('the run is over')

export function createRunOutputs(
  deps: RunDeps,
  { job, lease, earlier, committer, onFault }: RunOutputsOptions,
): RunOutputs {
  const { observer, outputRules } = deps
  const stop = new AbortController()
  const ingest = createIngest({
    storeBlob: (source, options) => deps.storeBlob(source, { ...options, lease }),
    newId: deps.newId,
    limit: deps.ingestLimit,
    maxBytes: deps.limits.maxOutputBytes,
    storageLeft: async () => deps.storageLeft?.(job.accountId) ?? Number.POSITIVE_INFINITY,
    signal: stop.signal,
    earlier,
    onReady(output) {
      observer.outputStored({ jobId: job.id, type: output.type, sizeBytes: output.sizeBytes })
      committer.addOutput(output)
    },
    onError: (cause) => onFault(cause, toFault(cause)),
  })
  return {
    add(reported) {
      for (const each of reported) {
        const draft = toOutputDraft(each, outputRules)
        if (draft !== null) ingest.add(draft)
      }
    },
    hasRoom: () => ingest.hasRoom(),
    allStored: () => ingest.allStored(),
    cut: (reason) => stop.abort(new Error(reason)),
    end: () => stop.abort(OVER),
  }
}

export function toFault(cause: unknown): OutputFault {
  if (!(cause instanceof EngineLostError)) {
    return { error: toIngestError(cause), mayPass: mayPassLater(cause), loss: null }
  }
  const error = toJobError('output_unreadable', `an output could not be read from the engine: ${cause.message}`)
  return { error, mayPass: true, loss: cause }
}

interface IngestDeps {
  readonly storeBlob: StoreBlob
  readonly newId: NewId
  /** Shared by all runs of a worker. */
  readonly limit: Pick<Semaphore, 'run'>
  /** For all outputs of the job together. */
  readonly maxBytes: number
  /** What the account may still keep; asked once, when the first output comes. */
  storageLeft(): Promise<number>
  readonly signal: AbortSignal
  /** What an earlier attempt of the job had made: the same bytes from the same node keep their id. */
  readonly earlier: readonly Output[]
  onReady(output: Output): void
  onError(error: unknown): void
}

interface Ingest {
  add(draft: OutputDraft): void
  /** Resolves when few enough outputs wait to be stored. */
  hasRoom(): Promise<void>
  /** Resolves when nothing is under way. */
  allStored(): Promise<void>
}

// How much may wait to be stored before the engine's events are read no further.
const MAX_WAITING = 64
const MAX_WAITING_BYTES = 67_108_864

/**
 * Turns drafts into outputs: reads the bytes into the blob store, a bounded number at a time, and hands the results on in
 * the order in which they were reported. What comes after a failed one is not handed on: the job fails with that error.
 */
function createIngest(deps: IngestDeps): Ingest {
  const earlier = [...deps.earlier]
  let last: Promise<void> = Promise.resolve()
  let underWay = 0
  let bytes = 0
  let left: Promise<number> | null = null
  let hasFailed = false
  let heldBytes = 0
  let waiting: { readonly isReady: () => boolean; readonly resolve: () => void }[] = []

  async function store(draft: OutputDraft): Promise<Output> {
    deps.signal.throwIfAborted()
    const { signal } = deps
    left ??= outlastOutage(deps.storageLeft, signal)
    const storageLeft = await left
    const maxBytes = Math.max(0, Math.min(deps.maxBytes, storageLeft) - bytes)
    // The bytes are read again after an outage: they are announced to the store before they get their final name.
    const storing = outlastOutage(() => deps.storeBlob(draft.read(), { maxBytes, signal }), signal)
    const { hash, sizeBytes } = await storing.catch((error: unknown) => {
      throw storageLeft < deps.maxBytes && isTooLarge(error) ? new StorageQuotaError({ cause: error }) : error
    })
    bytes += sizeBytes
    const { nodeId, name, type, contentType, location } = draft
    const output = { assetId: takeId(nodeId, hash), nodeId, name, type, contentType, sizeBytes, hash }
    return location === undefined ? output : { ...output, location }
  }

  function takeId(nodeId: string, hash: string): string {
    const at = earlier.findIndex((output) => output.nodeId === nodeId && output.hash === hash)
    const [same] = at === -1 ? [] : earlier.splice(at, 1)
    return same?.assetId ?? deps.newId()
  }

  function settle(draft: OutputDraft): void {
    draft.release?.()
    underWay--
    heldBytes -= draft.heldBytes
    const free = waiting.filter(({ isReady }) => isReady())
    waiting = waiting.filter((each) => !free.includes(each))
    for (const { resolve } of free) resolve()
  }

  async function until(isReady: () => boolean): Promise<void> {
    if (!isReady()) await new Promise<void>((resolve) => waiting.push({ isReady, resolve }))
  }

  return {
    add(draft) {
      underWay++
      heldBytes += draft.heldBytes
      const stored = deps.limit.run(() => store(draft))
      stored.catch(() => {})
      const before = last
      last = (async () => {
        await before
        try {
          const output = await stored
          if (!hasFailed) deps.onReady(output)
        } catch (error) {
          if (!hasFailed) deps.onError(error)
          hasFailed = true
        }
        settle(draft)
      })()
    },
    hasRoom: () => until(() => underWay < MAX_WAITING && heldBytes <= MAX_WAITING_BYTES),
    allStored: () => until(() => underWay === 0),
  }
}

/** The account may not store as much as its job made. */
class StorageQuotaError extends Error {
  constructor(options: ErrorOptions) {
    super('the account keeps as much as it may', options)
    this.name = 'StorageQuotaError'
  }
}

function isTooLarge(error: unknown): boolean {
  return error instanceof ServiceError && error.refusal === 'payload_too_large'
}

/**
 * A full disk, a busy storage or a store that is away may pass, and so may whatever else the service refuses bytes for: the same
 * job may succeed later, and the fault is not its own. Not so where it made too much, or hands on stored bytes that are gone.
 */
function mayPassLater(error: unknown): boolean {
  return error instanceof ServiceError && !isTooLarge(error) && !isGone(error)
}

function isGone({ refusal }: ServiceError): boolean {
  return refusal === 'output_unavailable'
}

/** The error of the job; its cause is only in our log. */
function toIngestError(error: unknown): JobError {
  if (error instanceof ServiceError && error.refusal === 'storage_full') {
    return toJobError('storage_full', 'an output could not be kept: the storage has no room for it')
  }
  if (error instanceof ServiceError && error.refusal === 'queue_full') {
    return toJobError('storage_busy', 'an output could not be kept: too much was being stored at once')
  }
  if (isStoreAway(error)) {
    return toJobError('storage_busy', 'an output could not be kept: the storage did not answer')
  }
  if (isTooLarge(error)) {
    return toJobError('output_too_large', 'the outputs of the job are larger than this service keeps')
  }
  if (error instanceof StorageQuotaError) {
    return toJobError(
      'storage_quota',
      'an output could not be kept: the account keeps as much as it may; delete assets, or wait until jobs expire',
    )
  }
  if (error instanceof ServiceError && !isGone(error)) {
    return toJobError('storage_busy', 'an output could not be kept: the service did not take it')
  }
  return toJobError('output_unreadable', 'an output could not be read from the engine')
}

// What a node reported, as an output of the job: its name, its kind and where its bytes come from. Nothing is dropped:
// a plain string, number or JSON value under any key becomes a small text or JSON file. Only two things are not outputs:
// the `animated` flags beside an image, and temporary preview files unless the operator wants them: those are kept for
// whoever asks for them by name, and not listed.

/** A report that has yet to be stored. */
export interface OutputDraft {
  readonly nodeId: string
  readonly name: string
  readonly type: OutputType
  readonly contentType: string
  /** Absent for what was no file. */
  readonly location?: OutputLocation
  /** How much memory it occupies until it is stored. */
  readonly heldBytes: number
  read(): AsyncIterable<Uint8Array>
  /** It will not be read again. */
  release?(): void
}

const NAME_MAX_LENGTH = 255
const NAME_PART_MAX_LENGTH = 64
const TEXT_SLICE_LENGTH = 262_144
const OCTETS = 'application/octet-stream'
// Under these keys everything is of one type. `images` is not among them: videos arrive there as well.
const TYPE_OF_KEY: Readonly<Record<string, OutputType>> = {
  gifs: 'video',
  audio: 'audio',
  latents: 'latent',
  files: 'file',
}

/** null when the item is not an output. */
export function toOutputDraft(reported: Reported, rules: OutputRules): OutputDraft | null {
  const { item, key, nodeId } = reported
  if (item.kind === 'file') return toFileDraft(reported, item, rules)
  if (key === 'animated' && typeof item.value === 'boolean') return null
  const isText = typeof item.value === 'string'
  const text = isText ? (item.value as string) : toJsonText(item.value)
  return {
    nodeId,
    name: `${toPlainName(reported)}.${isText ? 'txt' : 'json'}`,
    type: 'text',
    contentType: isText ? 'text/plain' : 'application/json',
    heldBytes: 2 * text.length,
    read: () => encode(text),
  }
}

/** In slices: a text may have hundreds of megabytes, and encoding one blocks the thread. */
async function* encode(text: string): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < text.length; ) {
    let end = Math.min(start + TEXT_SLICE_LENGTH, text.length)
    // Half a character cannot be encoded.
    if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end++
    yield Buffer.from(text.slice(start, end))
    start = end
  }
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00
}

function toFileDraft(reported: Reported, file: ReportedFile, { previewOutputs }: OutputRules): OutputDraft {
  const name = toBaseName(file.filename) ?? toPlainName(reported)
  const contentType =
    file.contentType !== null && isMediaType(file.contentType) ? file.contentType : (typeFromName(name) ?? OCTETS)
  return {
    nodeId: reported.nodeId,
    name,
    type: TYPE_OF_KEY[reported.key] ?? typeOfContent(reported.key, toBareType(contentType)),
    contentType,
    location: {
      folder: file.folder,
      subfolder: toSubfolder(file.subfolder),
      isUnlisted: file.folder === 'temp' && !previewOutputs,
    },
    heldBytes: file.heldBytes ?? 0,
    read: () => file.read(),
    release: () => file.release?.(),
  }
}

/** Compared with what a caller asks for, never used as a path. */
function toSubfolder(subfolder: string): string {
  return subfolder.replaceAll('\\', '/').slice(0, NAME_MAX_LENGTH).toWellFormed()
}

function typeOfContent(key: string, bareType: string): OutputType {
  const [family] = bareType.split('/', 1)
  if (family === 'image' || family === 'video' || family === 'audio') return family
  if (key === 'images') return 'image'
  if (family === 'text' || key === 'text') return 'text'
  return bareType === 'application/x-latent' ? 'latent' : 'file'
}

/** An engine may report a full path, in either style; only its last part may travel on. */
function toBaseName(filename: string): string | null {
  const base = filename.split(/[/\\]/).at(-1) ?? ''
  const clean = [...base].filter((character) => !isControl(character)).join('')
  if (clean === '' || clean === '.' || clean === '..') return null
  if (clean.length <= NAME_MAX_LENGTH) return clean
  const dot = clean.lastIndexOf('.')
  const extension = dot > 0 && clean.length - dot <= 16 ? clean.slice(dot) : ''
  return clean.slice(0, NAME_MAX_LENGTH - extension.length).toWellFormed() + extension
}

function isControl(character: string): boolean {
  const code = character.codePointAt(0) ?? 0
  return code < 32 || (code >= 127 && code < 160)
}

function toPlainName({ nodeId, key, index }: Reported): string {
  return [nodeId, key, String(index + 1)]
    .map((part) => part.slice(0, NAME_PART_MAX_LENGTH).replace(/[^A-Za-z0-9_.-]/g, '_'))
    .filter((part) => part !== '')
    .join('_')
}
