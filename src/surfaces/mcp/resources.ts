/** Jobs and outputs as resources: an agent's host can list, attach and read them without a tool. */
import { JOB_URI, toJobFacts } from './job-text.ts'
import { type ServiceApi, toFields } from './service-api.ts'

const MAX_LISTED = 50
// In base64 within one message; anything larger is fetched from its address.
const MAX_FILE_BYTES = 4_194_304

export async function listJobResources(api: ServiceApi, signal: AbortSignal) {
  const { jobs } = toFields(await (await api.call(`/api/v2/jobs?limit=${MAX_LISTED}`, { signal })).json())
  return (Array.isArray(jobs) ? jobs : []).map(toFields).map(({ id, status, created_at: at }) => ({
    uri: `${JOB_URI}${id}`,
    name: `job ${id}`,
    description: `${status}, submitted ${at}`,
    mimeType: 'application/json',
  }))
}

export async function readJobResource(uri: string, id: string, api: ServiceApi, signal: AbortSignal) {
  const job: unknown = await (await api.call(`/api/v2/jobs/${encodeURIComponent(id)}`, { signal })).json()
  return { uri, mimeType: 'application/json', text: JSON.stringify(toJobFacts(job, api)) }
}

export async function readOutputResource(uri: string, id: string, api: ServiceApi, signal: AbortSignal) {
  const path = `/api/v2/assets/${encodeURIComponent(id)}`
  const asset = toFields(await (await api.call(path, { signal })).json())
  const { content_type: type, size_bytes: size, url } = asset
  const bytes = Number(size) > MAX_FILE_BYTES ? null : await api.download(id, MAX_FILE_BYTES, signal)
  if (bytes !== null) return { uri, mimeType: String(type), blob: bytes.toString('base64') }
  const address = api.toPublicUrl(String(url))
  return { uri, mimeType: 'text/plain', text: `This file has ${size} bytes. Download it from ${address}` }
}
