/** The live notices of a run while it lasts and when it is over. They carry their content and are never stored. */
import type { EngineEvent } from '../../../../engine/graph/run-event.ts'
import type { EventBus } from '../../events/event-bus.ts'
import { type LiveEvent, toLiveEvent } from '../../events/live-event.ts'
import type { Job, JobError } from '../job.ts'
import type { RunEndStatus } from '../transitions.ts'

// A preview is a thumbnail; a larger frame would only fill the buffers of those who watch.
export const MAX_PREVIEW_BYTES = 4 * 1024 * 1024
// A picture that is a result may be read from the socket only. Clients of the socket refuse larger frames.
const MAX_RESULT_BYTES = 256 * 1024 * 1024
const MAX_TEXT_LENGTH = 64 * 1024

export function publishLive(bus: Pick<EventBus<LiveEvent>, 'publishLive'>, job: Job, event: EngineEvent): void {
  const bounded = toBounded(toLiveEvent(event))
  if (bounded !== null) bus.publishLive({ jobId: job.id, accountId: job.accountId, event: bounded })
}

/** null: it is larger than anybody who watches should have to hold. */
export function toBounded(event: LiveEvent): LiveEvent | null {
  if (event.type === 'preview') {
    const maxBytes = event.isResult === true ? MAX_RESULT_BYTES : MAX_PREVIEW_BYTES
    return event.bytes.byteLength <= maxBytes ? event : null
  }
  if ((event.type === 'log' || event.type === 'node_text') && event.text.length > MAX_TEXT_LENGTH) {
    return { ...event, text: event.text.slice(-MAX_TEXT_LENGTH) }
  }
  return event
}

/** The last live notice of a job. It follows the commit: a client that reads the job because of it finds the end. */
export function toTerminalEvent(status: RunEndStatus, error: JobError | null, said: EngineEvent | null): LiveEvent {
  if (status === 'succeeded') return { type: 'succeeded' }
  if (status === 'canceled' || error === null) return { type: 'interrupted' }
  if (said?.type === 'failed' && said.failure.code === error.code) return toLiveEvent(said)
  const { code, message, nodeId, classType, traceback } = error
  return { type: 'failed', failure: { code, message, nodeId, classType, traceback, exceptionType: code } }
}
