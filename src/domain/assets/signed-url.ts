/**
 * Addresses that carry their own authorisation: whoever holds one may read one asset of one account until it expires, and
 * nothing else. No credential travels to where the bytes lie.
 *
 * The newest key signs and every known key verifies, so keys can be exchanged without breaking addresses that are out. An
 * address has exactly one spelling: whatever differs from the text that we would write is refused, so nothing in it can be
 * moved, repeated or re-encoded. All refusals read the same and cost the same.
 */
import { createHash, createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../../lib/clock.ts'
import { isUuid } from '../../../lib/ids.ts'
import { ServiceError } from '../errors.ts'

/** Leave to read one asset for a while, for whoever holds the address. */
interface ContentGrant {
  readonly accountId: string
  readonly assetId: string
  readonly expiresAt: Date
  /** Written into the address beside the life that is left; left out: now. */
  readonly signedAt?: Date
}

/** Host-relative, beginning with `/`, without the mount prefix: the surface puts origin and prefix before it. */
export type SignContentUrl = (grant: ContentGrant) => string

/** `query` is the raw text behind the question mark. Throws `link_invalid`, with one wording for every reason. */
export type VerifyContentUrl = (assetId: string, query: string) => ContentGrant

export interface SigningKey {
  /** Names the key in addresses; says nothing about its secret. */
  readonly id: string
  readonly secret: Uint8Array
}

export interface ContentSigner {
  readonly sign: SignContentUrl
  readonly verify: VerifyContentUrl
}

export const CONTENT_PATH = '/content'

// Separates these signatures from any other use of the same secret.
const PURPOSE = 'atelier content v1\n'
const SECOND_MS = 1000
// The official clients read an expiry from these two names and from nothing else.
const QUERY =
  /^X-Goog-Date=(\d{8}T\d{6}Z)&X-Goog-Expires=([1-9]\d{0,8})&account=([A-Za-z0-9._~!'()*%-]{1,600})&key=([A-Za-z0-9_-]{1,32})&signature=([A-Za-z0-9_-]{43})$/

/** The first key signs. */
export function createContentSigner(keys: readonly SigningKey[], clock: Clock): ContentSigner {
  const [newest] = keys
  if (newest === undefined) throw new RangeError('a signer needs at least one key')
  const secrets = new Map<string, KeyObject>(keys.map(({ id, secret }) => [id, createSecretKey(secret)]))
  const newestSecret = createSecretKey(newest.secret)

  function sign(grant: ContentGrant): string {
    const { signedAt = clock.now() } = grant
    const date = toSeconds(signedAt)
    // At least a second: an address that is born expired would not even parse.
    const expires = Math.max(1, toSeconds(grant.expiresAt) - date)
    const account = encodeURIComponent(grant.accountId)
    const address = toAddress(grant.assetId, {
      date: writeDate(date),
      expires: String(expires),
      account,
      key: newest.id,
    })
    return `${address}&signature=${toSignature(newestSecret, address)}`
  }

  function verify(assetId: string, query: string): ContentGrant {
    const parts = QUERY.exec(query)
    if (parts === null || !isUuid(assetId)) throw invalidLink()
    const [, date, expires, account, key, signature] = parts
    const address = toAddress(assetId, { date, expires, account, key })
    // An unknown key costs as much as a known one.
    const expected = toSignature(secrets.get(key) ?? newestSecret, address)
    const isSigned = timingSafeEqual(Buffer.from(signature), Buffer.from(expected)) && secrets.has(key)
    const expiresAt = new Date((readDate(date) + Number(expires)) * SECOND_MS)
    if (!isSigned || !(clock.now() < expiresAt)) throw invalidLink()
    return { accountId: decodeURIComponent(account), assetId, expiresAt }
  }

  return { sign, verify }
}

/** The same for addresses that strangers hold: those of an account that is suspended are as good as none. */
export function refuseInactive(verify: VerifyContentUrl, isActive: (accountId: string) => boolean): VerifyContentUrl {
  return (assetId, query) => {
    const grant = verify(assetId, query)
    if (!isActive(grant.accountId)) throw invalidLink()
    return grant
  }
}

/** A key that was given without a name gets one that follows from its secret and does not reveal it. */
export function toSigningKey(secret: Uint8Array): SigningKey {
  const digest = createHash('sha256').update('atelier signing key\n').update(secret).digest('base64url')
  return { id: digest.slice(0, 12), secret }
}

interface AddressParts {
  readonly date: string
  readonly expires: string
  readonly account: string
  readonly key: string
}

function toAddress(assetId: string, { date, expires, account, key }: AddressParts): string {
  return `${CONTENT_PATH}/${assetId}?X-Goog-Date=${date}&X-Goog-Expires=${expires}&account=${account}&key=${key}`
}

function toSignature(secret: KeyObject, address: string): string {
  return createHmac('sha256', secret).update(PURPOSE).update(address).digest('base64url')
}

function toSeconds(date: Date): number {
  return Math.floor(date.getTime() / SECOND_MS)
}

/** `20260101T000000Z`. */
function writeDate(seconds: number): string {
  return new Date(seconds * SECOND_MS).toISOString().replace(/[-:]|\.\d+/g, '')
}

/** NaN for a date that does not exist: no comparison with it is true, so it counts as expired. */
function readDate(text: string): number {
  const iso = text.replace(/^(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})Z$/, '$1-$2-$3T$4:$5:$6Z')
  return Date.parse(iso) / SECOND_MS
}

function invalidLink(): ServiceError {
  return new ServiceError('link_invalid', 'this address is not valid, or not any more; ask for a new one')
}
