/**
 * The newest preview of each running job, bounded, and the delivery of every preview to its watchers. How many of them a reader is
 * shown is decided where frames are made. Previews are not stored anywhere.
 */
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import type { EventBus, JobLive } from '../../events/event-bus.ts'
import type { LiveEvent } from '../../events/live-event.ts'
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
  readonly bus: Pick<EventBus<LiveEvent>, 'onLive'>
  readonly maxJobs?: number
}

export function createPreviews({ bus, maxJobs = 256 }: PreviewsDeps): Previews {
  const newest = new BoundedMap<string, Preview>(maxJobs)
  // For runs in this process, always: a watcher that comes later gets the newest at once.
  const stop = bus.onLive('published_here', keepNewest)

  function keepNewest({ jobId, event }: JobLive<LiveEvent>): void {
    const preview = toPreview(event)
    if (preview !== null) newest.set(jobId, preview)
    else if (event.type === 'succeeded' || event.type === 'failed' || event.type === 'interrupted') {
      newest.delete(jobId)
    }
  }

  return {
    newest: (jobId) => newest.get(jobId) ?? null,
    listen(jobId, listener) {
      // A preview that arrives while the subscription is made is a repetition of the newest one.
      let isListening = false
      const stop = bus.onLive({ jobId }, (notice) => {
        keepNewest(notice)
        const preview = isListening ? toPreview(notice.event) : null
        if (preview !== null) listener(preview)
      })
      isListening = true
      return stop
    },
    [Symbol.dispose]() {
      stop()
      newest.clear()
    },
  }
}

/** null: no preview, or a picture that is a result: it may be of any size, and would only fill memory here. */
function toPreview(event: LiveEvent): Preview | null {
  if (event.type !== 'preview' || event.bytes.byteLength > MAX_PREVIEW_BYTES) return null
  return { nodeId: event.displayNodeId, contentType: event.contentType, bytes: event.bytes }
}
