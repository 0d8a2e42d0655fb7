/**
 * A link to a page on which whoever has it may run an endpoint, at the cost of the account that made it. What the page may use up is part of
 * the link: how many runs, how much money, for how long, and inside of which other pages it may stand.
 */
import type { Micros } from '../../../../lib/text/usd.ts'
import type { RunLimits } from '../../jobs/limits/run-limits.ts'
import type { EndpointKey } from '../endpoint-store.ts'

export interface ShareLimits {
  /** In the life of the link. */
  readonly runs: number
  /** In a day, in UTC; null: only those of its life count. */
  readonly runsPerDay: number | null
  /** Of all runs together; null: nothing bounds it but their number. */
  readonly spendMicros: Micros | null
  /** That wait or run at the same time. */
  readonly inFlight: number
}

export interface Share {
  readonly id: string
  readonly accountId: string
  /** The endpoint. */
  readonly name: string
  /** A number or an alias; null: whichever is current. */
  readonly version: string | null
  /** For its owner: where the link was given. */
  readonly note: string
  readonly limits: ShareLimits
  /** Hosts whose pages may show it in a frame, and call it; none: it is opened by itself only. */
  readonly referrers: readonly string[]
  readonly createdAt: Date
  readonly expiresAt: Date
  readonly revokedAt: Date | null
  /** The API key that made it; null: none. */
  readonly createdBy: string | null
}

export interface NewShare extends Share {
  /** SHA-256 of the link's token: the token itself is nowhere. */
  readonly digest: Uint8Array
}

/** As an object: an audit line says how it ended. */
interface CreatedShare {
  readonly outcome: 'created' | 'no_endpoint' | 'too_many'
}

export interface ShareStore {
  /** `limit`: how many that still work an endpoint may have. Of those that have ended as many are kept, the newest. */
  create(share: NewShare, limit: number): Promise<CreatedShare>
  /** Also one that has ended. */
  findByDigest(digest: Uint8Array): Promise<Share | null>
  /** The newest first, with those that have ended. */
  list(key: EndpointKey): Promise<readonly Share[]>
  /** null: there is none. One that was revoked before stays as it is. */
  revoke(key: EndpointKey, id: string, at: Date): Promise<Share | null>
}

type ShareState = 'active' | 'expired' | 'revoked'

export function stateOf({ revokedAt, expiresAt }: Share, now: Date): ShareState {
  if (revokedAt !== null) return 'revoked'
  return expiresAt.getTime() <= now.getTime() ? 'expired' : 'active'
}

/** Under which its runs are counted. */
export const scopeOf = ({ id }: Pick<Share, 'id'>) => `share:${id}`

export function toRunLimits({ runs, runsPerDay, spendMicros, inFlight }: ShareLimits): RunLimits {
  return {
    inFlight,
    runs: { ever: runs, ...(runsPerDay !== null && { day: runsPerDay }) },
    spend: spendMicros === null ? {} : { ever: spendMicros },
  }
}

const HOST = /^(?:\*\.)?(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?::\d{1,5})?$/
const MAX_HOST = 253

/** `example.com`, `*.example.com` for all below it, each with or without a port. */
export function isReferrer(text: string): boolean {
  return text.length <= MAX_HOST && HOST.test(text)
}

/** Whether a page of this origin may show the link: of the listed hosts, and no less safely than the link itself is reached. */
export function mayFrame({ referrers }: Pick<Share, 'referrers'>, origin: string, ownScheme: string): boolean {
  if (!URL.canParse(origin)) return false
  const { protocol, hostname, port } = new URL(origin)
  if (protocol !== 'https:' && !(protocol === 'http:' && ownScheme === 'http:')) return false
  return referrers.some((referrer) => {
    const [, under, name = '', wanted = ''] = /^(\*\.)?([^:]+)(?::(\d+))?$/.exec(referrer) ?? []
    const isNamed = under === undefined ? hostname === name : hostname.endsWith(`.${name}`)
    const usual = protocol === 'https:' ? '443' : '80'
    return isNamed && (port === '' ? usual : port) === (wanted === '' ? usual : wanted)
  })
}
