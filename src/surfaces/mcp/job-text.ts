/** A job as a tool reports it: what an agent acts on, and the addresses of everything else. */
import { type ServiceApi, toFields } from './service-api.ts'
import { json, type ToolContent } from './tool.ts'

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
