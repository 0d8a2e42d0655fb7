/** Checks AWS Signature Version 4 as a service does: in the headers, or in the query of an address that was given away. */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

interface SignatureRules {
  readonly id: string
  readonly secret: string
  readonly region: string
  readonly now: Date
}

/** The word of the refusal, or null when the request is signed. */
export type SignatureFault =
  | 'AccessDenied'
  | 'InvalidAccessKeyId'
  | 'SignatureDoesNotMatch'
  | 'RequestTimeTooSkewed'
  | 'AuthorizationHeaderMalformed'

const MAX_SKEW_MS = 15 * 60_000
const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 Credential=([^/,]+)\/(\d{8})\/([^/,]+)\/s3\/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$/

export function checkSignature(request: IncomingMessage, url: URL, rules: SignatureRules): SignatureFault | null {
  return url.searchParams.has('X-Amz-Signature') ? checkQuery(request, url, rules) : checkHeaders(request, url, rules)
}

function checkHeaders(request: IncomingMessage, url: URL, rules: SignatureRules): SignatureFault | null {
  const given = request.headers.authorization
  if (given === undefined) return 'AccessDenied'
  const parts = AUTHORIZATION.exec(given)
  const datetime = String(request.headers['x-amz-date'] ?? '')
  if (parts === null || !/^\d{8}T\d{6}Z$/.test(datetime)) return 'AuthorizationHeaderMalformed'
  const [, id = '', date = '', region = '', signedHeaders = '', signature = ''] = parts
  if (id !== rules.id) return 'InvalidAccessKeyId'
  if (region !== rules.region || !datetime.startsWith(date)) return 'AuthorizationHeaderMalformed'
  if (Math.abs(readDate(datetime) - rules.now.getTime()) > MAX_SKEW_MS) return 'RequestTimeTooSkewed'
  const names = signedHeaders.split(';')
  const mustBeSigned = Object.keys(request.headers).filter((name) => name.startsWith('x-amz-'))
  if (!names.includes('host') || mustBeSigned.some((name) => !names.includes(name))) return 'AccessDenied'
  const payload = String(request.headers['x-amz-content-sha256'] ?? '')
  if (payload === '') return 'AuthorizationHeaderMalformed'
  const canonical = toCanonical(request, url, { names, payload, query: [...url.searchParams] })
  return verify(canonical, { datetime, signature, rules })
}

function checkQuery(request: IncomingMessage, url: URL, rules: SignatureRules): SignatureFault | null {
  const query = url.searchParams
  const [id, date, region, service, end] = (query.get('X-Amz-Credential') ?? '').split('/')
  const datetime = query.get('X-Amz-Date') ?? ''
  const expires = Number(query.get('X-Amz-Expires'))
  if (id !== rules.id) return 'InvalidAccessKeyId'
  if (query.get('X-Amz-Algorithm') !== 'AWS4-HMAC-SHA256' || service !== 's3' || end !== 'aws4_request')
    return 'AuthorizationHeaderMalformed'
  if (region !== rules.region || !datetime.startsWith(date ?? '-') || !(expires >= 1 && expires <= 604_800))
    return 'AuthorizationHeaderMalformed'
  if (rules.now.getTime() > readDate(datetime) + expires * 1000) return 'AccessDenied'
  if (readDate(datetime) - rules.now.getTime() > MAX_SKEW_MS) return 'RequestTimeTooSkewed'
  const names = (query.get('X-Amz-SignedHeaders') ?? '').split(';')
  const signed = [...query].filter(([name]) => name !== 'X-Amz-Signature')
  const canonical = toCanonical(request, url, { names, payload: 'UNSIGNED-PAYLOAD', query: signed })
  return verify(canonical, { datetime, signature: query.get('X-Amz-Signature') ?? '', rules })
}

interface CanonicalParts {
  readonly names: readonly string[]
  readonly payload: string
  readonly query: readonly (readonly [string, string])[]
}

function toCanonical(request: IncomingMessage, url: URL, { names, payload, query }: CanonicalParts): string {
  const path = url.pathname
    .split('/')
    .map((step) => encode(decodeURIComponent(step)))
    .join('/')
  const search = query
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .sort()
    .join('&')
  const headers = names.map(
    (name) =>
      `${name}:${String(request.headers[name] ?? '')
        .trim()
        .replace(/\s+/g, ' ')}\n`,
  )
  return [request.method ?? '', path, search, headers.join(''), names.join(';'), payload].join('\n')
}

interface Verified {
  readonly datetime: string
  readonly signature: string
  readonly rules: SignatureRules
}

function verify(canonical: string, { datetime, signature, rules }: Verified): SignatureFault | null {
  const date = datetime.slice(0, 8)
  const scope = `${date}/${rules.region}/s3/aws4_request`
  const text = ['AWS4-HMAC-SHA256', datetime, scope, createHash('sha256').update(canonical).digest('hex')].join('\n')
  const key = [date, rules.region, 's3', 'aws4_request'].reduce<Buffer>(
    (secret, word) => createHmac('sha256', secret).update(word).digest(),
    Buffer.from(`AWS4${rules.secret}`),
  )
  const expected = createHmac('sha256', key).update(text).digest('hex')
  const isRight = signature.length === 64 && timingSafeEqual(Buffer.from(signature), Buffer.from(expected))
  return isRight ? null : 'SignatureDoesNotMatch'
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
}

function readDate(text: string): number {
  return Date.parse(text.replace(/^(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})Z$/, '$1-$2-$3T$4:$5:$6Z'))
}
