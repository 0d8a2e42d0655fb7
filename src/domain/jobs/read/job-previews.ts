/**
 * The newest preview of each running job, bounded, and the way of every preview to whoever watches. How many of them a reader is
 * shown is decided where frames are made. Previews are not stored anywhere.
 */
import type { EngineEvent } from '../../../../engine/graph/run-event.ts'
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import type { EventBus, JobLive } from '../../events/event-bus.ts'
import { MAX_PREVIEW_BYTES } from '../run/run-notices.ts'

export interface Preview {
  readonly nodeId: string
  readonly contentType: string
  readonly bytes: Uint8Array
}

type PreviewListener = (preview: Preview) => void

interface Previews extends Disposable {
  newest(jobId: string): Preview | null
  /** Returns the end of the subscription. */
  listen(jobId: string, listener: PreviewListener): () => void
}

interface PreviewsDeps {
  readonly bus: Pick<EventBus<EngineEvent>, 'onLive'>
  readonly maxJobs?: number
}

export function createPreviews({ bus, maxJobs = 256 }: PreviewsDeps): Previews {
  const newest = new BoundedMap<string, Preview>(maxJobs)
  const listeners = new Map<string, Set<PreviewListener>>()
  const stop = bus.onLive(onLive)

  function onLive({ jobId, event }: JobLive<EngineEvent>): void {
    if (event.type === 'preview') {
      // A picture that is a result may be of any size; as a preview it would only fill memory.
      if (event.bytes.byteLength > MAX_PREVIEW_BYTES) return
      const preview = { nodeId: event.displayNodeId, contentType: event.contentType, bytes: event.bytes }
      newest.set(jobId, preview)
      for (const listener of listeners.get(jobId) ?? []) listener(preview)
    } else if (event.type === 'succeeded' || event.type === 'failed' || event.type === 'interrupted') {
      newest.delete(jobId)
    }
  }

  function leave(jobId: string, listener: PreviewListener): void {
    const set = listeners.get(jobId)
    set?.delete(listener)
    if (set?.size === 0) listeners.delete(jobId)
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
      listeners.clear()
      newest.clear()
    },
  }
}
