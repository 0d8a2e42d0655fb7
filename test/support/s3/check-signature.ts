/**
 * Checks AWS Signature Version 4 as a service does: in the headers, or in the query of an address that was given away. Everything is
 * taken from the request line and the headers as they came, and computed from the published rules alone, so that it shares no code
 * and no mistake with what signs.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

/** Keys that a service has given out. */
export interface KnownKeys {
  readonly id: string
  readonly secret: string
  /** null: keys that last. */
  readonly token: string | null
  readonly expiresAt: Date | null
}

interface SignatureRules {
  readonly keys: readonly KnownKeys[]
  readonly region: string
  readonly now: Date
}

/** The words of the refusals, with the status that each has. */
export const SIGNATURE_FAULTS = {
  AccessDenied: 403,
  InvalidAccessKeyId: 403,
  SignatureDoesNotMatch: 403,
  RequestTimeTooSkewed: 403,
  AuthorizationHeaderMalformed: 400,
  AuthorizationQueryParametersError: 400,
  ExpiredToken: 400,
  InvalidToken: 400,
  InvalidRequest: 400,
} as const

export type SignatureFault = keyof typeof SIGNATURE_FAULTS

const MAX_SKEW_MS = 15 * 60_000
const MAX_LIFETIME_SECONDS = 604_800
const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 Credential=([^/,]+)\/(\d{8})\/([^/,]+)\/s3\/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$/

type Pair = readonly [name: string, value: string]

interface RawRequest {
  readonly method: string
  readonly path: string
  readonly query: readonly Pair[]
  readonly headers: NodeJS.Dict<string[]>
}

/** null when the request is signed by one of the keys, and in time. */
export function checkSignature(request: IncomingMessage, rules: SignatureRules): SignatureFault | null {
  const [path = '', search = ''] = (request.url ?? '').split(/\?(.*)/s)
  const query = search === '' ? [] : search.split('&').map(toPair)
  const raw = { method: request.method ?? '', path, query, headers: request.headersDistinct }
  return query.some(([name]) => name === 'X-Amz-Signature') ? checkQuery(raw, rules) : checkHeaders(raw, rules)
}

function checkHeaders(raw: RawRequest, { keys, region: expected, now }: SignatureRules): SignatureFault | null {
  const given = headerOf(raw, 'authorization')
  if (given === '') return 'AccessDenied'
  const parts = AUTHORIZATION.exec(given)
  const datetime = headerOf(raw, 'x-amz-date')
  const at = readDate(datetime)
  if (parts === null || Number.isNaN(at)) return 'AuthorizationHeaderMalformed'
  const [, id = '', date = '', region = '', signedHeaders = '', signature = ''] = parts
  const known = keys.find((each) => each.id === id)
  if (known === undefined) return 'InvalidAccessKeyId'
  if (region !== expected || !datetime.startsWith(date)) return 'AuthorizationHeaderMalformed'
  if (Math.abs(at - now.getTime()) > MAX_SKEW_MS) return 'RequestTimeTooSkewed'
  const names = signedHeaders.split(';')
  const mustBeSigned = Object.keys(raw.headers).filter((name) => name.startsWith('x-amz-') || name === 'host')
  if (mustBeSigned.some((name) => !names.includes(name)) || !isSorted(names)) return 'AccessDenied'
  const payload = headerOf(raw, 'x-amz-content-sha256')
  if (!/^(UNSIGNED-PAYLOAD|[0-9a-f]{64})$/.test(payload)) return 'InvalidRequest'
  const canonical = toCanonical(raw, { names, payload, query: raw.query })
  return (
    checkToken(known, headerOf(raw, 'x-amz-security-token'), now) ??
    verify(canonical, { datetime, signature, region, secret: known.secret })
  )
}

function checkQuery(raw: RawRequest, { keys, region: expected, now }: SignatureRules): SignatureFault | null {
  const one = (name: string) => raw.query.filter(([each]) => each === name).map(([, value]) => value)[0] ?? ''
  const [id, date, region, service, end] = one('X-Amz-Credential').split('/')
  const datetime = one('X-Amz-Date')
  const [at, lifetime] = [readDate(datetime), Number(one('X-Amz-Expires'))]
  const known = keys.find((each) => each.id === id)
  if (known === undefined) return 'InvalidAccessKeyId'
  const isOurs = one('X-Amz-Algorithm') === 'AWS4-HMAC-SHA256' && service === 's3' && end === 'aws4_request'
  if (!isOurs || region !== expected || Number.isNaN(at) || !datetime.startsWith(date ?? '-'))
    return 'AuthorizationQueryParametersError'
  if (!Number.isInteger(lifetime) || lifetime < 1 || lifetime > MAX_LIFETIME_SECONDS)
    return 'AuthorizationQueryParametersError'
  if (now.getTime() > at + lifetime * 1000) return 'AccessDenied'
  if (at - now.getTime() > MAX_SKEW_MS) return 'RequestTimeTooSkewed'
  const names = one('X-Amz-SignedHeaders').split(';')
  const mustBeSigned = Object.keys(raw.headers).filter((name) => name.startsWith('x-amz-') || name === 'host')
  if (mustBeSigned.some((name) => !names.includes(name)) || !isSorted(names)) return 'AccessDenied'
  const signed = raw.query.filter(([name]) => name !== 'X-Amz-Signature')
  const canonical = toCanonical(raw, { names, payload: 'UNSIGNED-PAYLOAD', query: signed })
  return (
    checkToken(known, one('X-Amz-Security-Token'), now) ??
    verify(canonical, { datetime, signature: one('X-Amz-Signature'), region, secret: known.secret })
  )
}

/** Keys of a session are good with their token only, and until they expire. */
function checkToken({ token, expiresAt }: KnownKeys, given: string, now: Date): SignatureFault | null {
  if (given !== (token ?? '')) return token === null || given !== '' ? 'InvalidToken' : 'InvalidAccessKeyId'
  return expiresAt !== null && expiresAt <= now ? 'ExpiredToken' : null
}

interface CanonicalParts {
  readonly names: readonly string[]
  readonly payload: string
  readonly query: readonly Pair[]
}

function toCanonical(raw: RawRequest, { names, payload, query }: CanonicalParts): string {
  // Storage takes paths as they are: neither `..` nor repeated slashes are folded, and nothing is encoded twice.
  const path = raw.path.split('/').map((step) => encode(decodeURIComponent(step)))
  const search = query.map(([name, value]) => `${encode(name)}=${encode(value)}`).sort()
  const headers = names.map((name) => `${name}:${headerOf(raw, name).trim().replace(/ +/g, ' ')}\n`)
  return [raw.method, path.join('/'), search.join('&'), headers.join(''), names.join(';'), payload].join('\n')
}

interface Claimed {
  readonly datetime: string
  readonly signature: string
  readonly region: string
  readonly secret: string
}

function verify(canonical: string, { datetime, signature, region, secret }: Claimed): SignatureFault | null {
  const date = datetime.slice(0, 8)
  const scope = `${date}/${region}/s3/aws4_request`
  const text = ['AWS4-HMAC-SHA256', datetime, scope, createHash('sha256').update(canonical).digest('hex')].join('\n')
  const key = [date, region, 's3', 'aws4_request'].reduce<Buffer>(
    (parent, word) => createHmac('sha256', parent).update(word).digest(),
    Buffer.from(`AWS4${secret}`),
  )
  const expected = createHmac('sha256', key).update(text).digest('hex')
  const isRight = signature.length === 64 && timingSafeEqual(Buffer.from(signature), Buffer.from(expected))
  return isRight ? null : 'SignatureDoesNotMatch'
}

function headerOf({ headers }: RawRequest, name: string): string {
  return headers[name]?.join(',') ?? ''
}

/** A plus stands for itself, as it does for the services; forms alone read it as a blank. */
function toPair(text: string): Pair {
  const [name = '', value = ''] = text.split(/=(.*)/s)
  return [decodeURIComponent(name), decodeURIComponent(value)]
}

function isSorted(names: readonly string[]): boolean {
  return names.every((name, index) => index === 0 || names[index - 1] < name)
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
}

function readDate(text: string): number {
  return Date.parse(text.replace(/^(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})Z$/, '$1-$2-$3T$4:$5:$6Z'))
}
