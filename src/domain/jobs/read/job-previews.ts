/**
 * Keeps the newest preview of each running job, bounded, and passes previews to those who watch: at most two a second per job,
 * always the newest, and the last one is never dropped by that limit. Previews are not stored.
 */
import type { EngineEvent } from '../../../../engine/graph/run-event.ts'
import type { EventBus, JobLive } from '../../events/event-bus.ts'
import { MAX_PREVIEW_BYTES } from '../run/run-notices.ts'

export interface Preview {
  readonly nodeId: string
  readonly contentType: string
  readonly bytes: Uint8Array
}

export type PreviewListener = (preview: Preview) => void

export interface Previews extends Disposable {
  newest(jobId: string): Preview | null
  /** Returns the end of the subscription. */
  listen(jobId: string, listener: PreviewListener): () => void
}

export interface PreviewsDeps {
  readonly bus: Pick<EventBus<EngineEvent>, 'onLive'>
  readonly everyMs?: number
  readonly maxJobs?: number
}

interface Pace {
  timer: NodeJS.Timeout | null
  /** Came too soon after the one before, and is sent when the interval is over. */
  waiting: Preview | null
}

export function createPreviews({ bus, everyMs = 500, maxJobs = 256 }: PreviewsDeps): Previews {
  const newest = new Map<string, Preview>()
  const listeners = new Map<string, Set<PreviewListener>>()
  const paces = new Map<string, Pace>()
  const stop = bus.onLive(onLive)

  function onLive({ jobId, event }: JobLive<EngineEvent>): void {
    if (event.type === 'preview') {
      // A picture that is a result may be of any size; kept as a preview it would only fill memory.
      if (event.bytes.byteLength > MAX_PREVIEW_BYTES) return
      const preview = { nodeId: event.displayNodeId, contentType: event.contentType, bytes: event.bytes }
      keep(jobId, preview)
      if (listeners.has(jobId)) offer(jobId, preview)
    } else if (event.type === 'succeeded' || event.type === 'failed' || event.type === 'interrupted') {
      newest.delete(jobId)
    }
  }

  function keep(jobId: string, preview: Preview): void {
    newest.delete(jobId)
    newest.set(jobId, preview)
    const [oldest] = newest.keys()
    if (newest.size > maxJobs && oldest !== undefined) newest.delete(oldest)
  }

  function offer(jobId: string, preview: Preview): void {
    const pace = paces.get(jobId)
    if (pace !== undefined) {
      pace.waiting = preview
      return
    }
    send(jobId, preview)
    const started: Pace = { timer: null, waiting: null }
    paces.set(jobId, started)
    started.timer = setTimeout(() => rest(jobId, started), everyMs)
  }

  function rest(jobId: string, pace: Pace): void {
    const { waiting } = pace
    pace.waiting = null
    if (waiting === null) {
      paces.delete(jobId)
      return
    }
    send(jobId, waiting)
    pace.timer = setTimeout(() => rest(jobId, pace), everyMs)
  }

  function send(jobId: string, preview: Preview): void {
    for (const listener of listeners.get(jobId) ?? []) listener(preview)
  }

  function leave(jobId: string, listener: PreviewListener): void {
    const set = listeners.get(jobId)
    set?.delete(listener)
    if (set === undefined || set.size > 0) return
    listeners.delete(jobId)
    clearTimeout(paces.get(jobId)?.timer ?? undefined)
    paces.delete(jobId)
  }

  return {
    newest: (jobId) => newest.get(jobId) ?? null,
    listen(jobId, listener) {
      const set = listeners.get(jobId) ?? new Set()
      listeners.set(jobId, set.add(listener))
      return () => leave(jobId, listener)
    },
    [Symbol.dispose]() {
      stop()
      for (const pace of paces.values()) clearTimeout(pace.timer ?? undefined)
      paces.clear()
      listeners.clear()
      newest.clear()
    },
  }
}
