/**
 * The links of an endpoint, made and revoked by its owner. The token of a link is told once, to whoever made it; what is kept is a digest.
 * A link that is unknown, expired or revoked, and one of an account that may do nothing, are the same to whoever opens it.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { Clock } from '../../../../lib/clock.ts'
import { isUuid, newUuidV4 } from '../../../../lib/ids.ts'
import { isPlainLine } from '../../../../lib/text/plain-text.ts'
import { MAX_MICROS } from '../../../../lib/text/usd.ts'
import type { AuditEntry } from '../../accounts/audit.ts'
import { invalidField, ServiceError } from '../../errors.ts'
import type { RunLimitStore } from '../../jobs/limits/run-limits.ts'
import { talliesAt } from '../../jobs/limits/run-limits.ts'
import type { Endpoint } from '../endpoint.ts'
import type { EndpointCaller, Reach } from '../reach.ts'
import { isReferrer, type Share, type ShareLimits, type ShareStore, scopeOf, stateOf } from './share.ts'

interface ShareWish extends EndpointCaller {
  readonly name: string
  readonly keyId: string | null
  readonly version: string | null
  readonly note: string
  readonly limits: ShareLimits
  readonly referrers: readonly string[]
  readonly expiresAt: Date
}

/** What was used of it. */
export interface ShareUse {
  readonly runs: number
  readonly runsToday: number
  readonly spentMicros: number
  readonly inFlight: number
}

interface ShareWithUse {
  readonly share: Share
  readonly use: ShareUse
}

export interface Shares {
  /** Throws invalid_field, and not_found without such an endpoint or version. */
  create(wish: ShareWish): Promise<{ readonly share: Share; readonly token: string }>
  list(caller: EndpointCaller, name: string): Promise<readonly ShareWithUse[]>
  /** From now on it leads nowhere, in every process. Runs that it has started go on. Throws not_found. */
  revoke(caller: EndpointCaller & Pick<ShareWish, 'keyId'>, name: string, id: string): Promise<ShareWithUse>
  /** Asks the store each time, so that nobody serves a link that was revoked. Throws not_found. */
  open(token: string): Promise<Share>
  useOf(share: Share): Promise<ShareUse>
}

interface SharesDeps {
  readonly store: ShareStore
  readonly audited: (entry: AuditEntry) => { readonly shares: ShareStore }
  readonly limits: Pick<RunLimitStore, 'findUse'>
  readonly endpoints: Pick<Reach, 'find' | 'resolve'>
  /** Whether the account may run anything; left out: it always may. */
  readonly isActive?: (accountId: string) => boolean
  /** Whether its runs cost its account anything. */
  readonly isCharged: (endpoint: Endpoint) => boolean
  readonly clock: Clock
}

const TOKEN_BYTES = 32
const TOKEN = /^[A-Za-z0-9_-]{43}$/
const MAX_SHARES = 100
const MAX_NOTE = 200
const MAX_REFERRERS = 50
const MAX_RUNS = 1_000_000
const MAX_IN_FLIGHT = 100
const MAX_LIFE_MS = 366 * 24 * 60 * 60 * 1000
// A link that is over at once is a mistake of units.
const MIN_LIFE_MS = 1000

const digestOf = (token: string) => createHash('sha256').update(token).digest()

export function createShares(deps: SharesDeps): Shares {
  const { store, audited, endpoints, clock, isActive = () => true } = deps
  const through = (
    accountId: string,
    keyId: string | null,
    entry: Pick<AuditEntry, 'action' | 'subject' | 'details'>,
  ) => audited({ ...entry, actor: keyId === null ? `token of account ${accountId}` : `key ${keyId}`, at: clock.now() })

  const useOf = async (share: Share) => (await withUse(deps, share.accountId, [share]))[0].use

  return {
    useOf,
    async create(wish) {
      const { accountId, name, keyId, version, limits, referrers, note, expiresAt } = wish
      const { endpoint } = await endpoints.resolve(wish, version === null ? name : `${name}@${version}`)
      const createdAt = clock.now()
      checkWish(wish, createdAt)
      if (limits.spendMicros === null && deps.isCharged(endpoint))
        throw invalidField('spend_usd', 'is required where runs cost something: say how much all of them may cost')
      const token = randomBytes(TOKEN_BYTES).toString('base64url')
      const share: Share = {
        ...{ id: newUuidV4(), accountId, name, version, note, limits, referrers: [...new Set(referrers)] },
        ...{ createdAt, expiresAt, revokedAt: null, createdBy: keyId },
      }
      const details = { endpoint: name, version, limits, referrers, expires_at: expiresAt.toISOString() }
      const { shares } = through(accountId, keyId, { action: 'share.create', subject: share.id, details })
      const { outcome } = await shares.create({ ...share, digest: digestOf(token) }, MAX_SHARES)
      if (outcome === 'no_endpoint') throw new ServiceError('not_found', 'there is no endpoint with this name')
      if (outcome === 'too_many')
        throw invalidField('name', `has ${MAX_SHARES} links that work already; revoke one of them first`)
      return { share, token }
    },
    async list(caller, name) {
      const { accountId } = await endpoints.find(caller, name)
      return withUse(deps, accountId, await store.list({ accountId, name }))
    },
    async revoke(caller, name, id) {
      const { accountId } = await endpoints.find(caller, name)
      const entry = { action: 'share.revoke', subject: id, details: { endpoint: name } }
      const { shares } = through(accountId, caller.keyId, entry)
      const revoked = isUuid(id) ? await shares.revoke({ accountId, name }, id, clock.now()) : null
      if (revoked === null) throw new ServiceError('not_found', 'the endpoint has no link with this id')
      return { share: revoked, use: await useOf(revoked) }
    },
    async open(token) {
      const share = TOKEN.test(token) ? await store.findByDigest(digestOf(token)) : null
      if (share === null || stateOf(share, clock.now()) !== 'active' || !isActive(share.accountId)) throw noShare()
      return share
    },
  }
}

function noShare(): ServiceError {
  return new ServiceError('not_found', 'this link does not work, or no longer: ask whoever gave it to you')
}

async function withUse(
  { limits, clock }: SharesDeps,
  accountId: string,
  shares: readonly Share[],
): Promise<ShareWithUse[]> {
  const uses = await limits.findUse(accountId, shares.map(scopeOf))
  return shares.map((share) => {
    const found = uses.get(scopeOf(share))
    if (found === undefined) return { share, use: { runs: 0, runsToday: 0, spentMicros: 0, inFlight: 0 } }
    const { day, ever } = talliesAt(found.tallies, clock.now())
    const use = { runs: ever.runs, runsToday: day.runs, spentMicros: ever.micros, inFlight: found.inFlight }
    return { share, use }
  })
}

function checkWish({ note, limits, referrers, expiresAt }: ShareWish, now: Date): void {
  mustBeCount('runs', limits.runs, MAX_RUNS)
  if (limits.runsPerDay !== null) mustBeCount('runs_per_day', limits.runsPerDay, MAX_RUNS)
  if (limits.spendMicros !== null) mustBeCount('spend_usd', limits.spendMicros, MAX_MICROS)
  mustBeCount('at_a_time', limits.inFlight, MAX_IN_FLIGHT)
  if (note.length > MAX_NOTE || !isPlainLine(note))
    throw invalidField('note', `must have at most ${MAX_NOTE} characters, none of which control anything`)
  if (referrers.length > MAX_REFERRERS) throw invalidField('referrers', `must be at most ${MAX_REFERRERS} hosts`)
  const wrong = referrers.find((referrer) => !isReferrer(referrer))
  if (wrong !== undefined)
    throw invalidField(
      'referrers',
      `must be hosts such as example.com, *.example.com or localhost:5173, in small letters and without https://, and ${JSON.stringify(wrong.slice(0, 64))} is none`,
    )
  const life = expiresAt.getTime() - now.getTime()
  if (!(life >= MIN_LIFE_MS)) throw invalidField('expires_at', 'must be in the future')
  if (life > MAX_LIFE_MS) throw invalidField('expires_at', 'must be within a year')
}

function mustBeCount(field: string, value: number, max: number): void {
  if (Number.isSafeInteger(value) && value >= 1 && value <= max) return
  throw invalidField(field, `must be a whole number from 1 to ${max}`)
}
