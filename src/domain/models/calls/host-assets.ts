/**
 * Copies the assets that a result names onto our storage and puts our addresses in their place. Best effort for each leaf:
 * what cannot be copied keeps the provider's address, and the call succeeds all the same.
 */
import type { Model } from '../catalog/model.ts'

export interface HostingRequest {
  readonly model: Model
  readonly accountId: string
  readonly callId: string
  /** Scheme, authority and mount prefix under which the caller reached us: what our addresses begin with. */
  readonly baseUrl: string
  /** A JSON document. */
  readonly body: Buffer
  /** Where parts with inline media stand that the caller wants as addresses; null or absent: they stay inline. */
  readonly inlineParts?: string | null
}

export interface HostedResult {
  readonly body: Buffer
  /** Whether an address of the provider is left in one of the model's asset leaves, hosted or not. */
  readonly hasForeignUrls: boolean
}

/** A result without any address, which is most of those with inline bytes, need not even be read. */
export function mayNameAssets({ body, inlineParts = null }: Pick<HostingRequest, 'body' | 'inlineParts'>): boolean {
  return inlineParts !== null || body.includes('://')
}

export type HostAssets = (
  request: HostingRequest,
  options: { readonly signal: AbortSignal; readonly deadline: Date },
) => Promise<HostedResult>
