/**
 * Frames as they are sent, header included. Each is built once and shared by all its readers, so nothing here may depend on
 * the reader. The binary layouts are ComfyUI's: big-endian words, then bytes.
 */
import type { LiveEvent } from '../../../domain/events/live-event.ts'

export type PreviewEvent = Extract<LiveEvent, { type: 'preview' }>

const FINAL_TEXT = 0x81
const FINAL_BINARY = 0x82
// RFC 6455 (5.2): up to 125 the length is in the header itself; these two values announce a length of 16 or 64 bits.
const LENGTH_16 = 126
const LENGTH_64 = 127
const MAX_16 = 0xffff

const PREVIEW_IMAGE = 1
const TEXT = 3
const PREVIEW_IMAGE_WITH_METADATA = 4
const IMAGE_TYPE_JPEG = 1
const IMAGE_TYPE_PNG = 2

export function encodeText(json: string): Buffer {
  const length = Buffer.byteLength(json)
  const frame = allocateFrame(FINAL_TEXT, length)
  frame.write(json, frame.length - length)
  return frame
}

/** Type 1: for clients that did not say that they understand type 4. */
export function encodePreview({ contentType, bytes }: PreviewEvent): readonly Buffer[] {
  const imageType = contentType === 'image/png' ? IMAGE_TYPE_PNG : IMAGE_TYPE_JPEG
  return encodePicture([PREVIEW_IMAGE, imageType], [], bytes)
}

/** Type 4: the same picture with the node that it belongs to. */
export function encodePreviewWithMetadata(jobId: string, event: PreviewEvent): readonly Buffer[] {
  const metadata = Buffer.from(
    toPythonJson({
      node_id: event.nodeId,
      prompt_id: jobId,
      display_node_id: event.displayNodeId,
      parent_node_id: event.parentNodeId,
      real_node_id: event.displayNodeId,
      image_type: event.contentType,
    }),
  )
  return encodePicture([PREVIEW_IMAGE_WITH_METADATA, metadata.length], [metadata], event.bytes)
}

/** Type 3: text shown beside a node. */
export function encodeNodeText(nodeId: string, text: string): Buffer {
  const id = Buffer.from(nodeId)
  return encodeBinary([TEXT, id.length], [id, Buffer.from(text)])
}

/** One frame in two pieces. The second is the picture itself: it may have many megabytes, and copies of it would hold the thread. */
function encodePicture(words: readonly number[], parts: readonly Uint8Array[], picture: Uint8Array): readonly Buffer[] {
  const bytes = Buffer.from(picture.buffer, picture.byteOffset, picture.byteLength)
  return [encodeBinary(words, parts, bytes.length), bytes]
}

/** `bytesBehind`: how much of the payload is sent behind this piece. */
function encodeBinary(words: readonly number[], parts: readonly Uint8Array[], bytesBehind = 0): Buffer {
  let length = words.length * 4
  for (const part of parts) length += part.length
  const frame = allocateFrame(FINAL_BINARY, length, bytesBehind)
  let at = frame.length - length
  for (const word of words) at = frame.writeUInt32BE(word, at)
  for (const part of parts) {
    frame.set(part, at)
    at += part.length
  }
  return frame
}

/** A frame with its header written and room behind it for the payload, or for as much of it as does not come in a second piece. */
function allocateFrame(firstByte: number, room: number, bytesBehind = 0): Buffer {
  const length = room + bytesBehind
  const headerLength = length < LENGTH_16 ? 2 : length <= MAX_16 ? 4 : 10
  // Not from the shared pool, whose memory the frame would hold until its slowest reader has it.
  const frame = Buffer.allocUnsafeSlow(headerLength + room)
  frame[0] = firstByte
  if (headerLength === 2) frame[1] = length
  else if (headerLength === 4) {
    frame[1] = LENGTH_16
    frame.writeUInt16BE(length, 2)
  } else {
    frame[1] = LENGTH_64
    frame.writeBigUInt64BE(BigInt(length), 2)
  }
  return frame
}

/** As Python's `json.dumps` writes a flat object: blanks after colon and comma, nothing beyond ASCII. */
function toPythonJson(fields: Readonly<Record<string, string | null>>): string {
  const parts = Object.entries(fields).map(([name, value]) => `"${name}": ${toAscii(JSON.stringify(value))}`)
  return `{${parts.join(', ')}}`
}

function toAscii(json: string): string {
  return json.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
