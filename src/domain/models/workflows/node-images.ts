/**
 * The pictures in a model's answer: written out as base64, or lying on our own storage. Others stay addresses, and so do those
 * for which there is no room: an answer may name the same large file again and again.
 */
import { isJsonObject, type JsonValue } from '../../../../lib/json/lossless-json.ts'
import type { CallBody } from '../calls/call-store.ts'

/** A body of ours, or the content behind an address of ours; null for any other address and for what is larger than allowed. */
export interface ReadBody {
  (body: CallBody): Promise<Buffer>
  readonly hosted: (url: string, maxBytes: number) => Promise<Buffer | null>
}

const DATA_URI = /^data:image\/[a-z0-9.+-]+;base64,/i
// The beginnings of PNG, JPEG, WebP and GIF files in base64.
const IMAGE_BASE64 = /^(?:iVBORw0KGgo|\/9j\/|UklGR|R0lGOD)/
const MIN_BASE64_LENGTH = 64
const MAX_IMAGES = 64
// Of one answer together, while they are on their way to the engine.
const MAX_HOSTED_BYTES = 268_435_456

export async function findImages(output: JsonValue, readBody: ReadBody): Promise<readonly Uint8Array[]> {
  const images: Uint8Array[] = []
  let leftBytes = MAX_HOSTED_BYTES
  for (const text of textsOf(output)) {
    if (images.length >= MAX_IMAGES) break
    const image = await toImage(text, readBody, leftBytes)
    if (image === null) continue
    images.push(image)
    leftBytes -= image.byteLength
  }
  return images
}

async function toImage(text: string, readBody: ReadBody, leftBytes: number): Promise<Uint8Array | null> {
  const head = DATA_URI.exec(text)?.[0]
  if (head !== undefined) return Buffer.from(text.slice(head.length), 'base64')
  if (text.length >= MIN_BASE64_LENGTH && IMAGE_BASE64.test(text)) return Buffer.from(text, 'base64')
  return text.startsWith('http') && leftBytes > 0 ? readBody.hosted(text, leftBytes) : null
}

function* textsOf(value: JsonValue): Generator<string> {
  if (typeof value === 'string') yield value
  else if (Array.isArray(value)) for (const item of value) yield* textsOf(item)
  else if (isJsonObject(value)) for (const item of Object.values(value)) yield* textsOf(item)
}
