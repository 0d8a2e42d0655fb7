/** Signs requests to a bucket (AWS Signature Version 4), in their headers or, for addresses that others use, in the query. */
import { AwsV4Signer } from 'aws4fetch'

export interface BucketKeys {
  readonly id: string
  readonly secret: string
  readonly token: string | null
}

interface UnsignedRequest {
  readonly method: string
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
}

interface RequestSigner {
  /** All headers of the request, signed and signing. */
  sign(request: UnsignedRequest): Promise<Readonly<Record<string, string>>>
  /** The whole address, good for so long, with exactly these headers. */
  presign(request: UnsignedRequest, lifetimeSeconds: number): Promise<string>
}

interface SignerOptions {
  readonly keys: BucketKeys
  readonly region: string
  /** The time of the service, as far as we know it. */
  now(): Date
}

/** `id:secret` or `id:secret:token`. */
export function readKeys(text: string): BucketKeys {
  const [id = '', secret = '', token = null] = text.split(':')
  return { id, secret, token }
}

export function createRequestSigner({ keys, region, now }: SignerOptions): RequestSigner {
  // Of derived keys, by day; the library adds one each day.
  let cache = new Map<string, ArrayBuffer>()

  function toOptions() {
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
    async sign({ method, url, headers }) {
      const signed = await new AwsV4Signer({ ...toOptions(), method, url: url.href, headers: { ...headers } }).sign()
      return Object.fromEntries(signed.headers)
    },
    async presign({ method, url, headers }, lifetimeSeconds) {
      const whole = new URL(url)
      whole.searchParams.set('X-Amz-Expires', String(lifetimeSeconds))
      // All of them: left to itself the library would not sign the length.
      const query = { signQuery: true, allHeaders: true }
      const request = { method, url: whole.href, headers: { ...headers } }
      const signed = await new AwsV4Signer({ ...toOptions(), ...request, ...query }).sign()
      // The signature counts blanks as %20, and so must whoever reads the address; URLSearchParams writes them as plus.
      return signed.url.href.replaceAll('+', '%20')
    },
  }
}
