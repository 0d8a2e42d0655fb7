/**
 * Where things are. Job links are host-relative and begin with the mount prefix, unless a setting says otherwise. Content URLs
 * are absolute: the local kind points at its own content operation; where many accounts share the service an address is
 * signed, carries its own authorisation and works for a bounded time.
 */
import type { Clock } from '../../../../lib/clock.ts'
import type { SignContentUrl } from '../../../domain/assets/signed-url.ts'

export interface LinkBase {
  /** Scheme and authority, without a trailing slash. */
  readonly origin: string
  /** '' or '/some/prefix'. */
  readonly mountPrefix: string
}

interface JobUrls {
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

function toContentUrl(assetId: string, { origin, mountPrefix }: LinkBase): string {
  return `${origin}${mountPrefix}${API_PATH}/assets/${assetId}/content`
}

export interface LinkedAsset {
  readonly accountId: string
  readonly assetId: string
  /** When the asset itself goes; null: never by itself. */
  readonly endsAt: Date | null
}

export interface ContentLink {
  /** Absolute. */
  readonly url: string
  readonly expiresAt: Date
}

export interface ContentLinks {
  readonly areSigned: boolean
  /** With its full life before it. */
  fresh(asset: LinkedAsset, base: LinkBase): ContentLink
  /** The same text until `steadyUntilMs`, so that answers which hold it can be kept; most of its life is before it. */
  steady(asset: LinkedAsset, base: LinkBase): ContentLink
  /** Milliseconds since 1970; infinite when addresses do not depend on the time. */
  steadyUntilMs(): number
}

// For records that never end; the address works on, and clients ask again by then.
const UNSIGNED_LIFETIME_MS = 24 * 60 * 60 * 1000
const SECOND_MS = 1000
// A cached answer is rebuilt this often within the life of an address.
const RENEWALS = 4

export function createDirectLinks(clock: Clock): ContentLinks {
  function link({ assetId, endsAt }: LinkedAsset, base: LinkBase): ContentLink {
    const expiresAt = endsAt ?? new Date(clock.now().getTime() + UNSIGNED_LIFETIME_MS)
    return { url: toContentUrl(assetId, base), expiresAt }
  }
  return { areSigned: false, fresh: link, steady: link, steadyUntilMs: () => Number.POSITIVE_INFINITY }
}

interface SignedLinksOptions {
  readonly sign: SignContentUrl
  readonly lifetimeMs: number
  readonly clock: Clock
}

export function createSignedLinks({ sign, lifetimeMs, clock }: SignedLinksOptions): ContentLinks {
  const periodMs = Math.max(SECOND_MS, lifetimeMs / RENEWALS)
  const periodOf = (nowMs: number) => Math.floor(nowMs / periodMs)

  function linkFrom(signedAtMs: number, asset: LinkedAsset, base: LinkBase): ContentLink {
    const { accountId, assetId, endsAt } = asset
    const ends = Math.min(signedAtMs + lifetimeMs, endsAt?.getTime() ?? Number.POSITIVE_INFINITY)
    // Addresses count whole seconds.
    const expiresAt = new Date(Math.floor(ends / SECOND_MS) * SECOND_MS)
    const path = sign({ accountId, assetId, expiresAt, signedAt: new Date(signedAtMs) })
    return { url: `${base.origin}${base.mountPrefix}${path}`, expiresAt }
  }

  return {
    areSigned: true,
    fresh: (asset, base) => linkFrom(clock.now().getTime(), asset, base),
    steady: (asset, base) => linkFrom(periodOf(clock.now().getTime()) * periodMs, asset, base),
    steadyUntilMs: () => (periodOf(clock.now().getTime()) + 1) * periodMs,
  }
}
