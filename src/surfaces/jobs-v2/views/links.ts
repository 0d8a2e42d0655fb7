/** Where things are. Job links are host-relative and begin with the mount prefix, unless a setting says otherwise; content URLs are absolute. */
export interface LinkBase {
  /** Scheme and authority, without a trailing slash. */
  readonly origin: string
  /** '' or '/some/prefix'. */
  readonly mountPrefix: string
}

export interface JobUrls {
  readonly self: string
  readonly events: string
  readonly cancel: string
  readonly logs: string
}

export interface JobLinkStyle {
  readonly isAbsolute: boolean
}

export const API_PATH = '/api/v2'

export function toJobUrls(jobId: string, { origin, mountPrefix }: LinkBase, { isAbsolute }: JobLinkStyle): JobUrls {
  const self = `${isAbsolute ? origin : ''}${mountPrefix}${API_PATH}/jobs/${jobId}`
  return { self, events: `${self}/events`, cancel: `${self}/cancel`, logs: `${self}/logs` }
}

export function toContentUrl(assetId: string, { origin, mountPrefix }: LinkBase): string {
  return `${origin}${mountPrefix}${API_PATH}/assets/${assetId}/content`
}
