/**
 * A live event on its way from a joined worker, as one message of bytes: the length of a line (four bytes, the highest first), the
 * line (the job, the lease and the event, separated by spaces), and then the bytes of a picture, if the event has one.
 */

import type { LiveEvent } from '../../events/live-event.ts'
import { decodeLiveEvent, encodeLiveEvent } from '../../events/live-event-wire.ts'
import type { Lease } from '../../jobs/job-store.ts'

/** Room for a preview, a picture that is a result, and their words. A larger one is not told. */
export const MAX_FRAME_BYTES = 32 * 1024 * 1024

interface LiveFrame {
  readonly lease: Lease
  readonly event: LiveEvent
}

const LENGTH_BYTES = 4
const NO_BYTES = new Uint8Array(0)

/** null: it is too large to be told, or cannot be written. */
export function encodeFrame({ lease: { jobId, leaseId }, event }: LiveFrame): Buffer | null {
  const encoded = encodeLiveEvent(event)
  if (encoded === null) return null
  const line = Buffer.from(`${jobId} ${leaseId} ${encoded.text}`)
  const bytes = encoded.bytes ?? NO_BYTES
  if (LENGTH_BYTES + line.length + bytes.length > MAX_FRAME_BYTES) return null
  const head = Buffer.alloc(LENGTH_BYTES)
  head.writeUInt32BE(line.length)
  return Buffer.concat([head, line, bytes])
}

/** null: it cannot be understood; it may come from a newer version, and every live event may be lost. */
export function decodeFrame(frame: Buffer): LiveFrame | null {
  if (frame.length < LENGTH_BYTES) return null
  const end = LENGTH_BYTES + frame.readUInt32BE(0)
  if (end > frame.length) return null
  const line = frame.toString('utf8', LENGTH_BYTES, end)
  const afterJob = line.indexOf(' ')
  const afterLease = line.indexOf(' ', afterJob + 1)
  if (afterJob < 0 || afterLease < 0) return null
  const bytes = end === frame.length ? null : frame.subarray(end)
  const event = decodeLiveEvent({ text: line.slice(afterLease + 1), bytes })
  if (event === null) return null
  return { lease: { jobId: line.slice(0, afterJob), leaseId: line.slice(afterJob + 1, afterLease) }, event }
}
