/**
 * The event that shows a preview. It may have megabytes, so its text is written straight into the frame, piece by piece: as a text
 * of its own it would be copied and looked through several times.
 */
import type { Preview } from '../../../domain/jobs/read/watch-job.ts'

// A multiple of three: only the last piece may end in padding.
const PIECE_BYTES = 3 * 16_384

export function toPreviewFrame({ nodeId, contentType, bytes }: Preview): Buffer {
  const picture = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const fields = JSON.stringify({ node_id: nodeId, content_type: contentType })
  const head = Buffer.from(`event: preview\ndata: ${fields.slice(0, -1)},"data_base64":"`)
  const tail = '"}\n\n'
  const frame = Buffer.allocUnsafeSlow(head.length + 4 * Math.ceil(picture.length / 3) + tail.length)
  let at = head.copy(frame)
  for (let from = 0; from < picture.length; from += PIECE_BYTES) {
    at += frame.write(picture.toString('base64', from, from + PIECE_BYTES), at, 'latin1')
  }
  frame.write(tail, at, 'latin1')
  return frame
}
