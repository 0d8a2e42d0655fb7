/** Spending and keys of the account that is signed in. */
import { getJson, send } from './client.ts'

export interface UsageAnswer {
  readonly from: string
  readonly to: string
  readonly tz: string
  readonly total_usd: string
  readonly held_usd: string
  readonly refunds_usd: string
  readonly series: readonly { readonly day: string; readonly usd: string }[]
  readonly rows: readonly {
    /** null: there is none, or it was not noted. */
    readonly key: string | null
    readonly kind: 'job' | 'call' | 'rest' | null
    readonly label: string | null
    readonly count: number
    readonly usd: string
  }[]
}

/** How long servers computed. */
export interface GpuAnswer {
  readonly total_gpu_seconds: number
  readonly runs: number
  /** What is in no row; null: nothing is, or it cannot be told. */
  readonly rest_gpu_seconds: number | null
  readonly series: readonly { readonly day: string; readonly gpu_seconds: number }[]
  readonly rows: readonly {
    readonly key: string
    readonly label: string | null
    readonly gpu_seconds: number
    readonly runs: number
  }[]
}

export function getGpuUsage(query: URLSearchParams, signal?: AbortSignal): Promise<GpuAnswer> {
  return getJson<GpuAnswer>(`/console/v1/usage/gpu?${query}`, signal)
}

export function getUsage(query: URLSearchParams, signal?: AbortSignal): Promise<UsageAnswer> {
  return getJson<UsageAnswer>(`/console/v1/usage?${query}`, signal)
}

export interface KeyRow {
  readonly id: string
  readonly name: string
  readonly scopes: readonly string[] | null
  readonly endpoints: readonly string[] | null
  readonly created_at: string
  readonly expires_at: string | null
  readonly last_used_at: string | null
  readonly revoked_at: string | null
  /** Until when the secret before the last rotation counts too. */
  readonly previous_until: string | null
  readonly is_current: boolean
}

export function listKeys(signal?: AbortSignal): Promise<{ readonly keys: readonly KeyRow[] }> {
  return getJson('/console/v1/keys', signal)
}

interface ShownKey {
  readonly key: KeyRow
  /** Only in the answer that made it. */
  readonly secret: string
}

/** `endpoints`: the only ones that it may call and see; null: all. */
export function createKey(
  name: string,
  scopes: readonly string[] | null,
  endpoints: readonly string[] | null,
): Promise<ShownKey> {
  return send('POST', '/console/v1/keys', { name, scopes, endpoints })
}

/** A new secret; the one before counts for so long beside it. */
export function rotateKey(id: string, overlapSeconds: number): Promise<ShownKey> {
  return send('POST', `/console/v1/keys/${encodeURIComponent(id)}/rotate`, { overlap_seconds: overlapSeconds })
}

export function revokeKey(id: string): Promise<unknown> {
  return send('DELETE', `/console/v1/keys/${encodeURIComponent(id)}`)
}
