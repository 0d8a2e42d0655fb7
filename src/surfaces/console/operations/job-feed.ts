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
        createJobFeed({
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

function createJobFeed(options: JobFeedOptions): Omit<SharedSource, 'left'> & { left(stream: EventStream): void } {
  const { accountId, jobId, mountPrefix, watchJob, liveRuns, ticker } = options
  const streams = new Set<EventStream>()
  const run = liveRuns.follow(jobId)
  let job: Job | null = null
  let preview: Preview | null = null
  /** Of a preview, made when it is first sent, and once for all readers. */
  let shown: { readonly preview: Preview; readonly frame: Buffer } | null = null
  let isPreviewNew = false
  let shownAt = Number.NEGATIVE_INFINITY
  let outputsTold = 0
  let runKey: symbol | null = null
  let lastLine = -1
  /** What was sent of each node, and the list and the status that it was made from. */
  const told = new Map<string, NodeSpan>()
  let toldNodes: readonly NodeSpan[] = []
  let toldEnd = false
  let stopWatch: (() => void) | null = null
  let isClosed = false

  async function begin(): Promise<void> {
    const watch = await watchJob(accountId, jobId, {
      onSnapshot: (next) => take(next),
      onPreview(next) {
        preview = next
        isPreviewNew = true
      },
      onGone() {
        for (const stream of streams) stream.end(encodeFrame('gone', JSON.stringify({ id: jobId })))
      },
    })
    if (isClosed) return watch.stop()
    stopWatch = watch.stop
    job = watch.job
    preview = watch.preview
    outputsTold = job.outputs.length
    remember(run.now())
  }

  function take(next: Job): void {
    const before = job
    job = next
    if (next.outputs.length < outputsTold) outputsTold = 0
    const fresh = next.outputs.slice(outputsTold)
    outputsTold = next.outputs.length
    tellRun()
    const frames = [...fresh.map(toOutputFrame)]
    if (before?.progress !== next.progress && next.progress !== null) frames.push(toProgressFrame(next))
    if (before?.status !== next.status || before.queuePosition !== next.queuePosition) frames.push(toStatusFrame(next))
    spread(frames)
    if (!isTerminal(next.status)) return
    for (const stream of streams) stream.end()
  }

  function spread(frames: readonly Buffer[]): void {
    if (frames.length === 0) return
    const pieces = joinSmall(frames)
    for (const stream of streams) stream.send(...pieces)
  }

  function toOutputFrame({ assetId, nodeId, name, type, contentType, sizeBytes }: Job['outputs'][number]): Buffer {
    const file = { asset_id: assetId, node_id: nodeId, name, type, content_type: contentType, size_bytes: sizeBytes }
    return encodeFrame('output', JSON.stringify({ ...file, url: toContentPath(mountPrefix, assetId) }))
  }

  function remember({ key, nodes, lines }: LiveRun): void {
    runKey = key
    toldNodes = nodes
    for (const span of nodes) told.set(span.nodeId, span)
    lastLine = lines.at(-1)?.n ?? lastLine
  }

  /** What nodes did and printed since the last look. */
  function tellRun(): void {
    const { key, nodes, lines } = run.now()
    if (key !== runKey) {
      // A new attempt: its nodes and lines start from the beginning.
      runKey = key
      told.clear()
      lastLine = -1
    }
    const frames: Buffer[] = []
    const hasEnded = job !== null && isTerminal(job.status)
    // How a node stands may change with the end of its job, too.
    const isEndNew = hasEnded !== toldEnd
    if (nodes !== toldNodes || isEndNew) {
      for (const span of nodes) {
        if (told.get(span.nodeId) === span && !isEndNew) continue
        told.set(span.nodeId, span)
        frames.push(encodeFrame('node', JSON.stringify(toNodeView(span))))
      }
    }
    toldNodes = nodes
    toldEnd = hasEnded
    const fresh = lines.at(-1)?.n === lastLine ? [] : lines.filter(({ n }) => n > lastLine)
    frames.push(...fresh.map(toLogFrame))
    lastLine = fresh.at(-1)?.n ?? lastLine
    spread(frames)
  }

  function previewFrameOf(preview: Preview): Buffer {
    if (shown?.preview !== preview) shown = { preview, frame: toPreviewFrame(preview) }
    return shown.frame
  }

  function toNodeView(span: NodeSpan) {
    const shownJob = job ?? { status: 'running', error: null, completedAt: null }
    const { nodeId, startedAtMs, step, steps } = span
    return {
      ...{ id: nodeId, attempt: job?.attempt ?? null, state: stateOf(shownJob, nodeId, span) },
      ...{ started_at: toTime(startedAtMs), ended_at: toTime(endOf(shownJob, nodeId, span)), step, steps },
    }
  }

  function toLogFrame(line: LogLine): Buffer {
    return encodeFrame('log', JSON.stringify({ ...toLineView(line), attempt: job?.attempt ?? null }))
  }

  function greet(stream: EventStream): void {
    if (job === null) return
    const { nodes, lines } = run.now()
    const frames = [
      toStatusFrame(job),
      ...(job.progress === null ? [] : [toProgressFrame(job)]),
      ...nodes.map((span) => encodeFrame('node', JSON.stringify(toNodeView(span)))),
      ...job.outputs.map(toOutputFrame),
      ...(preview === null ? [] : [previewFrameOf(preview)]),
      ...lines.slice(-FIRST_LINES).map(toLogFrame),
    ]
    const pieces = joinSmall(frames)
    if (isTerminal(job.status)) stream.end(...pieces)
    else stream.send(...pieces)
  }

  return {
    ready: begin(),
    join(stream) {
      streams.add(stream)
      greet(stream)
    },
    resync: greet,
    left: (stream) => void streams.delete(stream),
    tick() {
      if (job === null || isTerminal(job.status)) return
      tellRun()
      if (!isPreviewNew || preview === null || ticker.now() - shownAt < PREVIEW_MS) return
      isPreviewNew = false
      shownAt = ticker.now()
      spread([previewFrameOf(preview)])
    },
    close() {
      isClosed = true
      stopWatch?.()
      run.stop()
    },
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
