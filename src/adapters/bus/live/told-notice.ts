/** One notice about a job, with its sequence number among all notices of a process, in the forms that a link needs. */
import { type EncodedNotice, encodeNotice, type Notice } from '../../../domain/events/notice-lines.ts'

/** What is about one job, and so has an order worth keeping. */
export type JobNotice = Extract<Notice, { readonly kind: 'changed' | 'live' }>

/**
 * What becomes of it when somebody cannot keep up: a `preview` goes first, then a `step`, because the next one replaces it. A
 * `picture` is a result that exists nowhere else, and a `line` is everything else.
 */
type Weight = 'preview' | 'step' | 'picture' | 'line'

export class ToldNotice {
  /** Counts what one process has told, from 1. */
  readonly seq: number
  /** By the uptime of the process that told it. */
  readonly atMs: number
  readonly notice: JobNotice
  readonly weight: Weight
  /** Two with the same key say the same about different moments: the newer one is enough. null: nothing replaces it. */
  readonly key: string | null
  #encoded: EncodedNotice | null | undefined

  constructor(seq: number, atMs: number, notice: JobNotice) {
    this.seq = seq
    this.atMs = atMs
    this.notice = notice
    this.weight = weightOf(notice)
    this.key = keyOf(notice)
  }

  get jobId(): string {
    return this.notice.notice.jobId
  }

  get accountId(): string {
    return this.notice.notice.accountId
  }

  /** null: it cannot be told to other processes. Made when it is first needed, and once for all who need it. */
  get encoded(): EncodedNotice | null {
    if (this.#encoded === undefined) this.#encoded = encodeNotice(this.notice)
    return this.#encoded
  }

  /** About as much memory as it holds. */
  get bytes(): number {
    if (this.notice.kind === 'changed') return 200
    const { event } = this.notice.notice
    if (event.type === 'preview') return event.bytes.byteLength + 200
    if (event.type === 'node_text') return event.text.length + 200
    return event.type === 'node_report' || event.type === 'failed' ? (this.encoded?.line.length ?? 0) : 200
  }

  get isStart(): boolean {
    return this.notice.kind === 'live' && this.notice.notice.event.type === 'started'
  }

  /** A worker has taken the job: a run begins. */
  get isTaking(): boolean {
    return this.notice.kind === 'changed' && this.notice.notice.move === 'taken'
  }

  /** The run is over, whatever becomes of the job. */
  get isEnd(): boolean {
    const { notice } = this
    if (notice.kind === 'live') return ENDS.has(notice.notice.event.type)
    return notice.notice.move === 'ended' || notice.notice.move === 'returned'
  }
}

const ENDS: ReadonlySet<string> = new Set(['succeeded', 'failed', 'interrupted'])

/** Nobody outside of a process reads the logs of its runs, nor the steps that its engine only counts for itself. */
export function isForOthers(notice: JobNotice): boolean {
  if (notice.kind === 'changed') return true
  const { event } = notice.notice
  return event.type !== 'log' && !(event.type === 'node_progress' && event.isOwn === true)
}

/** Not of a job that waits, which has nothing to tell but that, and may be one of very many. */
export function isOfRun(notice: JobNotice): boolean {
  return notice.kind === 'live' || (notice.notice.move !== 'queued' && notice.notice.move !== 'dropped')
}

function weightOf(notice: JobNotice): Weight {
  if (notice.kind === 'changed') return notice.notice.isDetail === true ? 'step' : 'line'
  const { event } = notice.notice
  if (event.type === 'preview') return event.isResult === true ? 'picture' : 'preview'
  return event.type === 'node_progress' ? 'step' : 'line'
}

function keyOf(notice: JobNotice): string | null {
  if (notice.kind === 'changed') return notice.notice.isDetail === true ? 'version' : null
  const { event } = notice.notice
  if (event.type === 'node_progress') return `step ${event.nodeId}`
  return event.type === 'preview' && event.isResult !== true ? 'preview' : null
}

/**
 * The transport between two processes for their live links: frames of bytes, in order, until one side closes. It may break silently
 * at any moment, so its users check now and then whether the other side is still there.
 */
export interface Peer {
  /** The id of the process. */
  readonly id: string
  /** Where its internal listener is reached; null: nowhere. */
  readonly address: string | null
}

export interface Channel {
  /** Never throws and never waits. */
  send(frame: Uint8Array): void
  /** Harmless when called twice. */
  close(): void
}

export interface ChannelEvents {
  onFrame(frame: Uint8Array): void
  /** Once; nothing follows. */
  onClosed(): void
}

export interface Transport extends AsyncDisposable {
  /** The largest frame that it carries for sure. */
  readonly maxFrameBytes: number
  /** Whether this peer can be dialled at all. */
  reaches(peer: Peer): boolean
  /** Rejects when the peer cannot be reached, or is not who it should be. */
  dial(peer: Peer, events: ChannelEvents, signal: AbortSignal): Promise<Channel>
  /** Called once, before anything is dialled: what becomes of channels that others open. */
  accept(open: (channel: Channel, from: string) => ChannelEvents): void
}
