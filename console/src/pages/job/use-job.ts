/** One job with its nodes, kept up by its stream: asked again when something of it changed, at most twice a second. */
import { type Signal, signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { JobDetail, LogLine, NodeSpan } from '../../api/job-detail.ts'
import { getJob, getNodes } from '../../api/jobs.ts'
import { isEnded, type Summary } from '../../api/summary.ts'
import { type NodeChange, useJobLive } from '../../state/job-live.ts'
import { jobOf, takeSnapshot } from '../../state/live/live.ts'
import { type Resource, useResource } from '../../state/resource.ts'

const AGAIN_MS = 500
/** Those that the tab of the log has not taken yet; opened later, it asks for all. */
const MAX_NEW_LINES = 5000

export interface WatchedJob {
  readonly job: Resource<JobDetail>
  /** As the list knows it: what moves (progress, node, step) is newest here. */
  readonly summary: Summary | undefined
  readonly spans: Signal<ReadonlyMap<string, NodeSpan>>
  readonly isCut: Signal<boolean>
  readonly preview: Signal<string | null>
  readonly newLines: Signal<readonly LogLine[]>
}

export function useJob(id: string): WatchedJob {
  const parts = useMemo(
    () => ({
      spans: signal<ReadonlyMap<string, NodeSpan>>(new Map()),
      isCut: signal(false),
      newLines: signal<readonly LogLine[]>([]),
    }),
    [id],
  )
  /** What the stream told of nodes since the question on its way was asked: the answer may be older. */
  const heard = useMemo(() => new Map<string, NodeChange>(), [id])
  const job = useResource(`job ${id}`, async (abort) => {
    heard.clear()
    const [detail, nodes] = await Promise.all([getJob(id, abort), getNodes(id, abort).catch(() => null)])
    takeSnapshot([detail])
    if (nodes !== null) {
      const news = isEnded(detail.status) ? null : heard
      parts.spans.value = new Map(nodes.nodes.map((span) => [span.id, { ...span, ...news?.get(span.id) }]))
      parts.isCut.value = nodes.is_cut
    }
    return detail
  })
  const again = useMemo(() => throttle(job.reload, AGAIN_MS), [job])
  const summary = jobOf(id)
  const status = summary?.status ?? job.data.value?.status
  const isOver = status !== undefined && isEnded(status)
  const preview = useJobLive(isOver || job.data.value === null ? null : id, {
    onNodes: (changes) => {
      const spans = new Map(parts.spans.value)
      for (const change of changes) {
        heard.set(change.id, change)
        const known = spans.get(change.id)
        if (known === undefined) again()
        else spans.set(change.id, { ...known, ...change })
      }
      parts.spans.value = spans
    },
    onLines: (lines) => {
      parts.newLines.value = [...parts.newLines.value, ...lines].slice(-MAX_NEW_LINES)
    },
    onChange: again,
  })
  const mark = `${summary?.status} ${summary?.outputs} ${summary?.attempt}`
  const detail = job.data.value
  // Looked at with each answer, too: it may be older than what the stream told while it was on its way.
  useEffect(() => {
    if (detail === null || summary === undefined || detail.version >= summary.version) return
    if (mark !== `${detail.status} ${detail.outputs} ${detail.attempt}`) again()
  }, [mark, detail])
  return { job, summary, preview, ...parts }
}

function throttle(deed: () => void, ms: number): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  let last = 0
  return () => {
    if (timer !== undefined) return
    timer = setTimeout(
      () => {
        timer = undefined
        last = Date.now()
        deed()
      },
      Math.max(0, last + ms - Date.now()),
    )
  }
}
