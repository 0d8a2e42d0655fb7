/**
 * The stream of one job, as long as a component that shows it is there and somebody looks. Where no connection is free, or the stream
 * is down, `onChange` is called every two seconds instead, and the page asks.
 */
import { effect, type Signal, signal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import type { LogLine, NodeSpan } from '../api/job-detail.ts'
import { isEnded, type JobStatus } from '../api/summary.ts'
import { isPaused } from './live/live.ts'
import { isWatched } from './live/presence.ts'
import { takeStreamSlot } from './live/shared-stream.ts'
import { openStream } from './live/stream.ts'

const POLL_MS = 2000
const PAINT_MS = 100
/** More lines than this are not kept for one painting; the log's own page has them all. */
const MAX_LINES = 5000

/** What moved at a node; its class and title are known from before. */
export type NodeChange = Pick<NodeSpan, 'id' | 'state' | 'started_at' | 'ended_at' | 'step' | 'steps'>

export interface JobLiveHandlers {
  /** The newest of each node, ten times a second at most. */
  readonly onNodes?: (changes: readonly NodeChange[]) => void
  readonly onLines?: (lines: readonly LogLine[]) => void
  /** Something of the job itself changed: ask for it again. */
  readonly onChange?: () => void
}

interface PreviewFrame {
  readonly content_type: string
  readonly data_base64: string
}

/** The newest preview as an address for `<img>`; null: none came yet. */
export function useJobLive(id: string | null, handlers: JobLiveHandlers = {}): Signal<string | null> {
  const [preview] = useState(() => signal<string | null>(null))
  useEffect(() => {
    if (id === null) return
    return effect(() => (isWatched.value ? follow(id, handlers, preview) : undefined))
  }, [id])
  return preview
}

function follow(id: string, handlers: JobLiveHandlers, preview: Signal<string | null>): () => void {
  let isClosed = false
  let close = () => {}
  let release: (() => void) | null = null
  let isAskingForSlot = false
  let isLive = false
  let hasEnded = false
  const poll = setInterval(() => {
    if (!isLive && !isPaused.peek()) handlers.onChange?.()
    if (release === null) void begin()
  }, POLL_MS)

  const painter = createPainter(handlers, preview)

  async function begin(): Promise<void> {
    if (isAskingForSlot) return
    isAskingForSlot = true
    const slot = await takeStreamSlot()
    isAskingForSlot = false
    if (slot === null) return
    if (isClosed) return slot()
    release = slot
    close = openStream({
      path: `/console/v1/jobs/${encodeURIComponent(id)}/live`,
      isOver: () => hasEnded,
      onState(state) {
        isLive = state === 'live' || state === 'ended'
        if (state === 'live' && !isPaused.peek()) handlers.onChange?.()
      },
      onFrame({ event, data }) {
        if (event !== 'status' && event !== 'output') return painter.take(event, data)
        if (event === 'status') hasEnded = isEnded((JSON.parse(data) as { status: JobStatus }).status)
        if (!isPaused.peek()) handlers.onChange?.()
      },
    })
  }
  void begin()

  let wasPaused = false
  const unpause = isPaused.subscribe((isNowPaused) => {
    if (isNowPaused) wasPaused = true
    else if (wasPaused) {
      wasPaused = false
      painter.paint()
      handlers.onChange?.()
    }
  })
  return () => {
    isClosed = true
    unpause()
    clearInterval(poll)
    painter.stop()
    close()
    release?.()
  }
}

/** Gathers what comes and hands it on in one go, so that a page is drawn ten times a second at most. */
function createPainter(handlers: JobLiveHandlers, preview: Signal<string | null>) {
  const nodes = new Map<string, NodeChange>()
  let lines: LogLine[] = []
  let picture: PreviewFrame | null = null
  let planned: ReturnType<typeof setTimeout> | undefined
  function paint(): void {
    planned = undefined
    // Kept, not lost: it is shown when the pause ends.
    if (isPaused.peek()) return
    if (nodes.size > 0) handlers.onNodes?.([...nodes.values()])
    if (lines.length > 0) handlers.onLines?.(lines)
    if (picture !== null) preview.value = toImage(picture)
    nodes.clear()
    lines = []
    picture = null
  }
  function take(event: string, data: string): void {
    if (event === 'preview') picture = JSON.parse(data) as PreviewFrame
    else if (event === 'node') {
      const change = JSON.parse(data) as NodeChange
      nodes.set(change.id, change)
    } else if (event === 'log') {
      if (lines.length >= MAX_LINES) lines = lines.slice(-MAX_LINES / 2)
      lines.push(JSON.parse(data) as LogLine)
    }
    planned ??= setTimeout(paint, PAINT_MS)
  }
  return { paint, take, stop: () => clearTimeout(planned) }
}

/** Pictures alone: whatever else the type says is not shown. */
function toImage({ content_type: type, data_base64: data }: PreviewFrame): string | null {
  return /^image\/(png|jpeg|webp)$/.test(type) && /^[A-Za-z0-9+/=]*$/.test(data) ? `data:${type};base64,${data}` : null
}
