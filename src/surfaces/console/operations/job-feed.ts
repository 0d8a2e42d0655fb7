/**
 * One job as it happens, for all who look at its page: its status, its progress, each node that changes, previews at most twice a
 * second, outputs, and the lines of its log. It begins with everything as it is, and so it does again for a reader that fell behind.
 */
import type { FastifyInstance } from 'fastify'
import { systemTicker, type Ticker } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import type { Job } from '../../../domain/jobs/job.ts'
import type { LiveRun, LiveRuns, Preview, WatchJob } from '../../../domain/jobs/read/watch-job.ts'
import type { LogLine } from '../../../domain/jobs/run/record/log-lines.ts'
import type { NodeSpan } from '../../../domain/jobs/run/record/run-record.ts'
import { isTerminal } from '../../../domain/jobs/transitions.ts'
import { needs, serviceAddressOf } from '../../kit/guards/routes.ts'
import { toContentPath } from '../../kit/jobs/job-view.ts'
import type { SharedSource } from '../../kit/streams/shared-streams.ts'
import { type EventStream, encodeFrame, joinSmall, toPreviewFrame } from '../../kit/streams/sse.ts'
import { CONSOLE_API, type ConsoleDeps } from '../console-operation.ts'
import { endOf, jobIdOf, stateOf, toLineView, toTime } from './job.ts'
import { toStreamTerms } from './jobs.ts'

export function getJobLive(app: FastifyInstance, deps: ConsoleDeps): void {
  const { callerOf, console: parts, log, streams } = deps
  app.get(`${CONSOLE_API}/jobs/:id/live`, { ...needs('jobs:read'), exposeHeadRoute: false }, async (request, reply) => {
    const caller = callerOf(request)
    const { accountId } = caller
    const jobId = jobIdOf(request)
    const { mountPrefix } = serviceAddressOf(request)
    await streams.open(reply.raw, {
      ...toStreamTerms(request, deps),
      caller,
      key: `job ${accountId} ${jobId} ${mountPrefix}`,
      make: () =>
        new JobFeed({
          ...{ accountId, jobId, mountPrefix, log, ticker: systemTicker },
          watchJob: parts.watchJob,
          liveRuns: parts.liveRuns,
        }),
    })
    return reply.hijack()
  })
}

interface JobFeedOptions {
  readonly accountId: string
  readonly jobId: string
  readonly mountPrefix: string
  readonly watchJob: WatchJob
  readonly liveRuns: Pick<LiveRuns, 'follow'>
  readonly ticker: Ticker
  readonly log: Log
}

const PREVIEW_MS = 500
// What a reader that comes late is shown of the log; the rest can be asked for.
const FIRST_LINES = 200

class JobFeed implements SharedSource {
  readonly ready: Promise<void>
  readonly #deps: JobFeedOptions
  readonly #streams = new Set<EventStream>()
  readonly #run: ReturnType<LiveRuns['follow']>
  #job: Job | null = null
  #preview: Preview | null = null
  /** Of a preview, made when it is first sent, and once for all readers. */
  #shown: { readonly preview: Preview; readonly frame: Buffer } | null = null
  #isPreviewNew = false
  #shownAt = Number.NEGATIVE_INFINITY
  #outputsTold = 0
  #runKey: symbol | null = null
  #lastLine = -1
  /** What was sent of each node, and the list and the status that it was made from. */
  readonly #told = new Map<string, NodeSpan>()
  #toldNodes: readonly NodeSpan[] = []
  #toldEnd = false
  #stopWatch: (() => void) | null = null
  #isClosed = false

  constructor(deps: JobFeedOptions) {
    this.#deps = deps
    this.#run = deps.liveRuns.follow(deps.jobId)
    this.ready = this.#begin()
  }

  join(stream: EventStream): void {
    this.#streams.add(stream)
    this.#greet(stream)
  }

  resync(stream: EventStream): void {
    this.#greet(stream)
  }

  left(stream: EventStream): void {
    this.#streams.delete(stream)
  }

  tick(): void {
    if (this.#job === null || isTerminal(this.#job.status)) return
    this.#tellRun()
    if (!this.#isPreviewNew || this.#preview === null || this.#deps.ticker.now() - this.#shownAt < PREVIEW_MS) return
    this.#isPreviewNew = false
    this.#shownAt = this.#deps.ticker.now()
    this.#spread([this.#previewFrameOf(this.#preview)])
  }

  close(): void {
    this.#isClosed = true
    this.#stopWatch?.()
    this.#run.stop()
  }

  async #begin(): Promise<void> {
    const { watchJob, accountId, jobId } = this.#deps
    const watch = await watchJob(accountId, jobId, {
      onSnapshot: (next) => this.#take(next),
      onPreview: (next) => {
        this.#preview = next
        this.#isPreviewNew = true
      },
      onGone: () => {
        for (const stream of this.#streams) stream.end(encodeFrame('gone', JSON.stringify({ id: jobId })))
      },
    })
    if (this.#isClosed) return watch.stop()
    this.#stopWatch = watch.stop
    this.#job = watch.job
    this.#preview = watch.preview
    this.#outputsTold = this.#job.outputs.length
    this.#remember(this.#run.now())
  }

  #take(next: Job): void {
    const before = this.#job
    this.#job = next
    if (next.outputs.length < this.#outputsTold) this.#outputsTold = 0
    const fresh = next.outputs.slice(this.#outputsTold)
    this.#outputsTold = next.outputs.length
    this.#tellRun()
    const frames = [
      ...fresh.map((assetId_nodeId_name_type_contentType_sizeBytes) =>
        this.#toOutputFrame(assetId_nodeId_name_type_contentType_sizeBytes),
      ),
    ]
    if (before?.progress !== next.progress && next.progress !== null) frames.push(toProgressFrame(next))
    if (before?.status !== next.status || before.queuePosition !== next.queuePosition) frames.push(toStatusFrame(next))
    this.#spread(frames)
    if (!isTerminal(next.status)) return
    for (const stream of this.#streams) stream.end()
  }

  #spread(frames: readonly Buffer[]): void {
    if (frames.length === 0) return
    const pieces = joinSmall(frames)
    for (const stream of this.#streams) stream.send(...pieces)
  }

  #toOutputFrame({ assetId, nodeId, name, type, contentType, sizeBytes }: Job['outputs'][number]): Buffer {
    const file = { asset_id: assetId, node_id: nodeId, name, type, content_type: contentType, size_bytes: sizeBytes }
    return encodeFrame('output', JSON.stringify({ ...file, url: toContentPath(this.#deps.mountPrefix, assetId) }))
  }

  #remember({ key, nodes, lines }: LiveRun): void {
    this.#runKey = key
    this.#toldNodes = nodes
    for (const span of nodes) this.#told.set(span.nodeId, span)
    this.#lastLine = lines.at(-1)?.n ?? this.#lastLine
  }

  /** What nodes did and printed since the last look. */
  #tellRun(): void {
    const { key, nodes, lines } = this.#run.now()
    if (key !== this.#runKey) {
      // A new attempt: its nodes and lines start from the beginning.
      this.#runKey = key
      this.#told.clear()
      this.#lastLine = -1
    }
    const frames: Buffer[] = []
    const hasEnded = this.#job !== null && isTerminal(this.#job.status)
    // How a node stands may change with the end of its job, too.
    const isEndNew = hasEnded !== this.#toldEnd
    if (nodes !== this.#toldNodes || isEndNew) {
      for (const span of nodes) {
        if (this.#told.get(span.nodeId) === span && !isEndNew) continue
        this.#told.set(span.nodeId, span)
        frames.push(encodeFrame('node', JSON.stringify(this.#toNodeView(span))))
      }
    }
    this.#toldNodes = nodes
    this.#toldEnd = hasEnded
    const fresh = lines.at(-1)?.n === this.#lastLine ? [] : lines.filter(({ n }) => n > this.#lastLine)
    frames.push(...fresh.map((line) => this.#toLogFrame(line)))
    this.#lastLine = fresh.at(-1)?.n ?? this.#lastLine
    this.#spread(frames)
  }

  #previewFrameOf(preview: Preview): Buffer {
    if (this.#shown?.preview !== preview) this.#shown = { preview, frame: toPreviewFrame(preview) }
    return this.#shown.frame
  }

  #toNodeView(span: NodeSpan) {
    const shownJob = this.#job ?? { status: 'running', error: null, completedAt: null }
    const { nodeId, startedAtMs, step, steps } = span
    return {
      ...{ id: nodeId, attempt: this.#job?.attempt ?? null, state: stateOf(shownJob, nodeId, span) },
      ...{ started_at: toTime(startedAtMs), ended_at: toTime(endOf(shownJob, span)), step, steps },
    }
  }

  #toLogFrame(line: LogLine): Buffer {
    return encodeFrame('log', JSON.stringify({ ...toLineView(line), attempt: this.#job?.attempt ?? null }))
  }

  #greet(stream: EventStream): void {
    if (this.#job === null) return
    const { nodes, lines } = this.#run.now()
    const frames = [
      toStatusFrame(this.#job),
      ...(this.#job.progress === null ? [] : [toProgressFrame(this.#job)]),
      ...nodes.map((span) => encodeFrame('node', JSON.stringify(this.#toNodeView(span)))),
      ...this.#job.outputs.map((assetId_nodeId_name_type_contentType_sizeBytes) =>
        this.#toOutputFrame(assetId_nodeId_name_type_contentType_sizeBytes),
      ),
      ...(this.#preview === null ? [] : [this.#previewFrameOf(this.#preview)]),
      ...lines.slice(-FIRST_LINES).map((line) => this.#toLogFrame(line)),
    ]
    const pieces = joinSmall(frames)
    if (isTerminal(this.#job.status)) stream.end(...pieces)
    else stream.send(...pieces)
  }
}

function toStatusFrame({ status, version, queuePosition, startedAt, completedAt, error }: Job): Buffer {
  const view = {
    ...{ status, version, queue_position: queuePosition },
    started_at: startedAt?.toISOString() ?? null,
    completed_at: completedAt?.toISOString() ?? null,
    error: error === null ? null : { code: error.code, message: error.message, node_id: error.nodeId },
  }
  return encodeFrame('status', JSON.stringify(view))
}

function toProgressFrame({ progress }: Job): Buffer {
  const view = {
    value: progress?.value ?? 0,
    nodes_done: progress?.nodesDone ?? 0,
    nodes_total: progress?.nodesTotal ?? 0,
    node: progress?.currentNode == null ? null : { id: progress.currentNode, class_type: progress.currentNodeClass },
    step: progress?.step ?? null,
    steps: progress?.steps ?? null,
  }
  return encodeFrame('progress', JSON.stringify(view))
}
