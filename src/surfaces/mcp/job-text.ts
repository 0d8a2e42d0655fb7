/** A job as a tool reports it: what an agent acts on, and the addresses of everything else. */

import { sniffType } from '../../../lib/files/mime.ts'
import { ServiceError } from '../../domain/errors.ts'
import { type ServiceApi, toFields } from './service-api.ts'
import { json, type ToolContent, type ToolHost } from './tool.ts'

export const JOB_URI = 'atelier://jobs/'
export const OUTPUT_URI = 'atelier://outputs/'

export const ENDED: ReadonlySet<unknown> = new Set(['succeeded', 'failed', 'canceled', 'expired'])

// A job may have thousands of outputs; the rest is in its resource.
const MAX_LINKS = 20
const KEPT = [
  'id',
  'status',
  'queue_position',
  'progress',
  'error',
  'metadata',
  'created_at',
  'completed_at',
  'expires_at',
  'reused_from',
]

export function toJobFacts(job: unknown, api: ServiceApi) {
  const fields = toFields(job)
  const kept = Object.entries(fields).filter(([name, value]) => KEPT.includes(name) && value !== null)
  const outputs = outputsOf(fields).map(({ id, name, node_id, content_type, size_bytes, url }) => ({
    ...{ asset_id: id, name, node_id, content_type, size_bytes },
    url: api.toPublicUrl(String(url)),
  }))
  return { ...Object.fromEntries(kept), ...(outputs.length > 0 && { outputs }) }
}

/** The facts, then a link to each of the first outputs. */
export function tellJob(job: unknown, api: ServiceApi): readonly ToolContent[] {
  const links = outputsOf(toFields(job))
    .slice(0, MAX_LINKS)
    .map(
      ({ id, name, content_type: mimeType, size_bytes: size }): ToolContent => ({
        ...{ type: 'resource_link', uri: `${OUTPUT_URI}${id}`, name: String(name) },
        ...(typeof mimeType === 'string' && { mimeType }),
        ...(typeof size === 'number' && { size }),
      }),
    )
  return [json(toJobFacts(job, api)), ...links]
}

function outputsOf({ outputs }: Readonly<Record<string, unknown>>) {
  return (Array.isArray(outputs) ? outputs : []).map(toFields)
}

// Pictures as an agent gets them: small enough to be looked at within a conversation. A picture that is larger is made smaller, and
// what cannot be shown is left to its link.

/** The most that is read of a picture in order to show it. */
export const MAX_SOURCE_BYTES = 33_554_432
// In base64 one MiB, which is what common agents take of one answer.
const MAX_SHOWN_BYTES = 786_432
export const DEFAULT_PIXELS = 1024
const MIN_PIXELS = 128
const QUALITY = 80
// What agents can look at.
const SHOWN_AS_IS = new Set(['image/png', 'image/jpeg', 'image/webp', 'image/gif'])

/** null: no picture, or none that can be made small enough. */
export async function showPicture(
  bytes: Uint8Array,
  pictures: ToolHost['pictures'],
  maxPixels = DEFAULT_PIXELS,
): Promise<ToolContent | null> {
  const type = sniffType(bytes)
  if (type === null || !type.startsWith('image/')) return null
  // A picture of few bytes may still have many pixels, so a requested size is always applied.
  if (SHOWN_AS_IS.has(type) && bytes.length <= MAX_SHOWN_BYTES && maxPixels >= DEFAULT_PIXELS)
    return toContent(bytes, type)
  for (let fitPixels = maxPixels; fitPixels >= MIN_PIXELS; fitPixels = Math.floor(fitPixels / 2)) {
    const smaller = await shrink(bytes, pictures, fitPixels)
    if (smaller === null) return null
    if (smaller.bytes.length <= MAX_SHOWN_BYTES) return toContent(smaller.bytes, smaller.contentType)
  }
  return null
}

async function shrink(bytes: Uint8Array, pictures: ToolHost['pictures'], fitPixels: number) {
  try {
    return await pictures.preview(bytes, { format: 'webp', quality: QUALITY, fitPixels })
  } catch (error) {
    if (error instanceof ServiceError) return null
    throw error
  }
}

function toContent(bytes: Uint8Array, mimeType: string): ToolContent {
  return { type: 'image', data: Buffer.from(bytes).toString('base64'), mimeType }
}
