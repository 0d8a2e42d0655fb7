/** Signs requests to a bucket (AWS Signature Version 4), in their headers or, for addresses that others use, in the query. */
import { AwsV4Signer } from 'aws4fetch'
import type { BucketKeys } from './bucket-keys.ts'

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
