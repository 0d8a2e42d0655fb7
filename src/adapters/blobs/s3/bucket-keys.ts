/**
 * The keys that requests to a bucket are signed with. Keys of a session pass: new ones are fetched a while before that, in the
 * background and once for all requests, and whoever finds that the storage no longer takes the old ones gets new ones. While the
 * source of keys is away, those that are still good are used to their end.
 */
import { AwsV4Signer } from 'aws4fetch'
import type { Log } from '../../../../lib/log.ts'
import { settlesWithin } from '../../../../lib/waiting/sleep.ts'
import { S3Error } from './s3-error.ts'

export interface BucketKeys {
  readonly id: string
  readonly secret: string
  /** null: keys that belong to no session. */
  readonly token: string | null
  /** null: they last, or nobody says how long. */
  readonly expiresAt: Date | null
}

export interface KeySource {
  /** Good now, as far as is known. Throws S3Error when there are none. */
  current(): Promise<BucketKeys>
  /** Other keys in place of these, which the storage refused; null: there are none. */
  renew(refused: BucketKeys): Promise<BucketKeys | null>
}

interface KeySourceOptions {
  /** Fetches keys. May throw anything; an S3Error is passed on as it is. */
  load(): Promise<BucketKeys>
  readonly log: Pick<Log, 'warn'>
  readonly now?: () => Date
}

// Half of the shortest session that services give, so that addresses signed with the keys have some minutes left. Machines get new
// keys of their role about five minutes before the end, and are asked again until then.
const EARLY_MS = 8 * 60_000
// Keys with so little left could pass while a request is on its way.
const LATE_MS = 30_000
// After an answer without newer keys, and after a failure.
const ASK_AGAIN_MS = 10_000
const LOAD_WITHIN_MS = 20_000

/** `id:secret` or `id:secret:token`. */
export function readKeys(text: string): BucketKeys {
  const [id = '', secret = '', token = null] = text.split(':')
  return { id, secret, token, expiresAt: null }
}

/** Keys that nobody renews. */
export function toKeySource(keys: BucketKeys): KeySource {
  return { current: async () => keys, renew: async () => null }
}

export function createKeySource({ load, log, now = () => new Date() }: KeySourceOptions): KeySource {
  let keys: BucketKeys | null = null
  let asking: Promise<BucketKeys> | null = null
  let askedAt = Number.NEGATIVE_INFINITY
  let renewedAt = Number.NEGATIVE_INFINITY

  async function ask(): Promise<BucketKeys> {
    askedAt = now().getTime()
    const loading = load()
    if (!(await settlesWithin(loading, LOAD_WITHIN_MS))) throw new Error('the source of keys does not answer')
    const loaded = await loading
    if (keys === null || !isSame(loaded, keys)) keys = loaded
    return keys
  }

  /** One for everybody who waits. */
  function refresh(): Promise<BucketKeys> {
    asking ??= ask()
      .catch((thrown: unknown) => {
        const error = thrown instanceof S3Error ? thrown : toKeysError(thrown)
        // The first time whoever asks is told.
        if (keys !== null)
          log.warn({ reason: error.message }, 'new keys for the bucket cannot be fetched; it is tried again')
        throw error
      })
      .finally(() => {
        asking = null
      })
    return asking
  }

  const mayAsk = (sinceMs: number) => asking !== null || now().getTime() - sinceMs >= ASK_AGAIN_MS

  async function refreshOr(old: BucketKeys): Promise<BucketKeys> {
    try {
      return await refresh()
    } catch (error) {
      if (leftMs(old, now()) <= 0) throw error
      return old
    }
  }

  return {
    async current() {
      if (keys === null) return refresh()
      const left = leftMs(keys, now())
      if (left > EARLY_MS || (left > 0 && !mayAsk(askedAt))) return keys
      const fresh = refreshOr(keys)
      if (left <= LATE_MS) return fresh
      fresh.catch(() => {})
      return keys
    },
    async renew(refused) {
      if (keys !== null && keys !== refused) return keys
      if (!mayAsk(renewedAt)) return null
      renewedAt = now().getTime()
      const renewed = await refreshOr(refused)
      return renewed === refused ? null : renewed
    },
  }
}

function leftMs({ expiresAt }: BucketKeys, now: Date): number {
  return expiresAt === null ? Number.POSITIVE_INFINITY : expiresAt.getTime() - now.getTime()
}

function isSame(one: BucketKeys, other: BucketKeys): boolean {
  const isSameKey = one.id === other.id && one.secret === other.secret && one.token === other.token
  return isSameKey && one.expiresAt?.getTime() === other.expiresAt?.getTime()
}

function toKeysError(error: unknown): S3Error {
  const said = error instanceof Error ? error.message.split('\n')[0] : String(error)
  return new S3Error(`the keys of the bucket cannot be fetched: ${said}`, { status: null, code: 'keys', cause: error })
}

interface UnsignedRequest {
  readonly method: string
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
}

interface RequestSigner {
  /** All headers of the request, signed and signing. */
  sign(request: UnsignedRequest, keys: BucketKeys): Promise<Readonly<Record<string, string>>>
  /** The whole address, with exactly these headers; good for so long, and no longer than the keys. */
  presign(request: UnsignedRequest, keys: BucketKeys, lifetimeSeconds: number): Promise<string>
}

interface SignerOptions {
  readonly region: string
  /** The time of the service, as far as we know it. */
  now(): Date
}

/** Signs requests to a bucket (AWS Signature Version 4), in their headers or, for addresses that others use, in the query. */
export function createRequestSigner({ region, now }: SignerOptions): RequestSigner {
  // Of derived keys, by day; the library adds one each day, and one for each new secret.
  let cache = new Map<string, ArrayBuffer>()

  function toOptions(keys: BucketKeys) {
    if (cache.size > 2) cache = new Map()
    return {
      accessKeyId: keys.id,
      secretAccessKey: keys.secret,
      ...(keys.token !== null && { sessionToken: keys.token }),
      service: 's3',
      region,
      cache,
      datetime: now()
        .toISOString()
        .replace(/[:-]|\.\d{3}/g, ''),
    }
  }

  return {
    async sign({ method, url, headers }, keys) {
      const signed = await new AwsV4Signer({
        ...toOptions(keys),
        method,
        url: url.href,
        headers: { ...headers },
      }).sign()
      return Object.fromEntries(signed.headers)
    },
    async presign({ method, url, headers }, keys, lifetimeSeconds) {
      const whole = new URL(url)
      const leftSeconds = Math.floor(((keys.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY) - now().getTime()) / 1000)
      whole.searchParams.set('X-Amz-Expires', String(Math.max(1, Math.min(lifetimeSeconds, leftSeconds))))
      // All of them: left to itself the library would not sign the length.
      const query = { signQuery: true, allHeaders: true }
      const request = { method, url: whole.href, headers: { ...headers } }
      const signed = await new AwsV4Signer({ ...toOptions(keys), ...request, ...query }).sign()
      // The signature counts blanks as %20, and so must whoever reads the address; URLSearchParams writes them as plus.
      return signed.url.href.replaceAll('+', '%20')
    },
  }
}
