/** Frames of the socket, read into messages. Frames that we do not know become null: a newer server may send anything. */
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parseLosslessJson,
} from '../../../../../lib/json/lossless-json.ts'

export interface JsonMessage {
  readonly kind: 'json'
  readonly type: string
  readonly data: JsonObject
}

/** A preview. Those of binary type 1 do not say which run they belong to. */
export interface PreviewMessage {
  readonly kind: 'preview'
  readonly promptId: string | null
  readonly nodeId: string | null
  readonly displayNodeId: string | null
  readonly parentNodeId: string | null
  readonly contentType: string
  readonly bytes: Uint8Array
}

/** A text for a node of the run that the server is executing. */
export interface TextMessage {
  readonly kind: 'text'
  readonly nodeId: string
  readonly text: string
}

export type EngineMessage = JsonMessage | PreviewMessage | TextMessage

const PREVIEW = 1
const TEXT = 3
const PREVIEW_WITH_METADATA = 4
// Of the metadata that says which run and node a preview belongs to.
const MAX_METADATA_BYTES = 65_536
const TYPE_OF_IMAGE: ReadonlyMap<number, string> = new Map([
  [1, 'image/jpeg'],
  [2, 'image/png'],
])

// Messages that tell how far a run is, which is nearly all of them. None of their numbers is the user's.
const STATE = /^\{"type": ?"(?:status|progress_state|progress|executing|execution_(?:start|cached|success))"/

export function readTextFrame(text: string): JsonMessage | null {
  let value: JsonValue
  try {
    value = STATE.test(text) ? (JSON.parse(text) as JsonValue) : parseLosslessJson(text)
  } catch {
    return null
  }
  if (!isJsonObject(value) || typeof value.type !== 'string') return null
  return { kind: 'json', type: value.type, data: isJsonObject(value.data) ? value.data : {} }
}

/** The bytes of a preview are a view of the frame. */
export function readBinaryFrame(frame: Uint8Array): PreviewMessage | TextMessage | null {
  const bytes = Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength)
  if (bytes.length < 8) return null
  const type = bytes.readUInt32BE(0)
  if (type === PREVIEW) return readPreview(bytes)
  if (type === TEXT) return readText(bytes)
  return type === PREVIEW_WITH_METADATA ? readPreviewWithMetadata(bytes) : null
}

function readPreview(bytes: Buffer): PreviewMessage | null {
  const contentType = TYPE_OF_IMAGE.get(bytes.readUInt32BE(4))
  if (contentType === undefined) return null
  const unknown = { promptId: null, nodeId: null, displayNodeId: null, parentNodeId: null }
  return { kind: 'preview', ...unknown, contentType, bytes: bytes.subarray(8) }
}

function readText(bytes: Buffer): TextMessage | null {
  const end = 8 + bytes.readUInt32BE(4)
  if (end > bytes.length) return null
  return { kind: 'text', nodeId: bytes.toString('utf8', 8, end), text: bytes.toString('utf8', end) }
}

function readPreviewWithMetadata(bytes: Buffer): PreviewMessage | null {
  const length = bytes.readUInt32BE(4)
  if (length > MAX_METADATA_BYTES || 8 + length > bytes.length) return null
  let metadata: JsonValue
  try {
    metadata = parseLosslessJson(bytes.toString('utf8', 8, 8 + length))
  } catch {
    return null
  }
  if (!isJsonObject(metadata)) return null
  return {
    kind: 'preview',
    promptId: toText(metadata.prompt_id),
    nodeId: toText(metadata.node_id),
    displayNodeId: toText(metadata.display_node_id),
    parentNodeId: toText(metadata.parent_node_id),
    contentType: toText(metadata.image_type) ?? 'image/jpeg',
    bytes: bytes.subarray(8 + length),
  }
}

export function toText(value: JsonValue | undefined): string | null {
  return typeof value === 'string' ? value : null
}
