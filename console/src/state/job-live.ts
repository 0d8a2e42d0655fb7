/**
 * The stream of one job, as long as a component that shows it is there and somebody looks. Where no connection is free, or the stream
 * is down, `onLost` is called every two seconds instead, and the page asks.
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

/** What moved at a node; its class and title are known from before. */
export type NodeChange = Pick<NodeSpan, 'id' | 'state' | 'started_at' | 'ended_at' | 'step' | 'steps'>

export interface JobLiveHandlers {
  readonly onNode?: (change: NodeChange) => void
  readonly onLog?: (line: LogLine) => void
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
  let release = () => {}
  let isLive = false
  let hasEnded = false
  const poll = setInterval(() => {
    if (!isLive && !isPaused.value) handlers.onChange?.()
  }, POLL_MS)
  const begin = async () => {
    const slot = await takeStreamSlot()
    if (slot === null) return
    if (isClosed) return slot()
    release = slot
    close = openStream({
      path: `/console/v1/jobs/${encodeURIComponent(id)}/live`,
      isOver: () => hasEnded,
      onState(state) {
        isLive = state === 'live' || state === 'ended'
        if (state === 'live') handlers.onChange?.()
      },
      onFrame({ event, data }) {
        if (isPaused.value) return
        if (event === 'preview') preview.value = toImage(JSON.parse(data) as PreviewFrame)
        else if (event === 'node') handlers.onNode?.(JSON.parse(data) as NodeChange)
        else if (event === 'log') handlers.onLog?.(JSON.parse(data) as LogLine)
        else if (event === 'status') {
          hasEnded = isEnded((JSON.parse(data) as { status: JobStatus }).status)
          handlers.onChange?.()
        } else if (event === 'output') handlers.onChange?.()
      },
    })
  }
  void begin()
  return () => {
    isClosed = true
    clearInterval(poll)
    close()
    release()
  }
}

/** Pictures alone: whatever else the type says is not shown. */
function toImage({ content_type: type, data_base64: data }: PreviewFrame): string | null {
  return /^image\/(png|jpeg|webp)$/.test(type) && /^[A-Za-z0-9+/=]*$/.test(data) ? `data:${type};base64,${data}` : null
}
