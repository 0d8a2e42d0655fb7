/** Reads the address of a bucket on S3-compatible storage. Keys never stand in it: they are given by environment or file. */
import { Secret } from '../secrets.ts'
import { isLoopback } from './read-network.ts'

export interface BucketAddress {
  readonly bucket: string
  /** '' or 'some/prefix/'. */
  readonly prefix: string
  /** Scheme and host of the service, without the bucket. */
  readonly endpoint: string
  /** What clients reach the service by. */
  readonly publicEndpoint: string
  readonly region: string
  /** Whether the bucket stands in the path of an address, or before its host. */
  readonly isPathStyle: boolean
  /** For messages. */
  readonly shown: string
}

const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
const PREFIX = /^[A-Za-z0-9!_.*()-]+(\/[A-Za-z0-9!_.*()-]+)*$/
const REGION = /^[a-z0-9-]{1,64}$/
const PARAMETERS = ['endpoint', 'publicEndpoint', 'region', 'pathStyle']
const DEFAULT_REGION = 'us-east-1'
const EXAMPLE = 'give for example s3://bucket/prefix?endpoint=https://s3.example.com&region=eu-central-1&pathStyle=1'
const MAX_LENGTH = 2048

export function readBucket(text: string): BucketAddress {
  const url = text.startsWith('s3://') && text.length <= MAX_LENGTH && URL.canParse(text) ? new URL(text) : null
  if (url === null || url.hash !== '' || url.port !== '') throw new Error(`is not the address of a bucket; ${EXAMPLE}`)
  if (url.username !== '' || url.password !== '')
    throw new Error('holds a user name; give the keys in ATELIER_BLOBS_KEYS, or by --blobs-keys-file')
  const unknown = [...url.searchParams.keys()].find((name) => !PARAMETERS.includes(name))
  if (unknown !== undefined)
    throw new Error(`has the parameter ${JSON.stringify(unknown)}; use ${PARAMETERS.join(', ')}`)
  const bucket = url.hostname
  if (!BUCKET.test(bucket)) throw new Error(`names no bucket; ${EXAMPLE}`)
  const prefix = url.pathname.replace(/^\/|\/$/g, '')
  if (prefix !== '' && (!PREFIX.test(prefix) || prefix.length > 256 || prefix.includes('..')))
    throw new Error('has a prefix with other characters than letters, digits, / and -_.!*()')
  const region = url.searchParams.get('region') ?? DEFAULT_REGION
  if (!REGION.test(region)) throw new Error('has a region that is none; give for example eu-central-1')
  const endpoint = readEndpoint('endpoint', url.searchParams.get('endpoint') ?? `https://s3.${region}.amazonaws.com`)
  const publicEndpoint = url.searchParams.get('publicEndpoint')
  return {
    bucket,
    prefix: prefix === '' ? '' : `${prefix}/`,
    endpoint,
    publicEndpoint: publicEndpoint === null ? endpoint : readEndpoint('publicEndpoint', publicEndpoint),
    region,
    isPathStyle: readPathStyle(url.searchParams, endpoint),
    shown: `s3://${bucket}/${prefix} at ${endpoint}`,
  }
}

function readEndpoint(name: string, text: string): string {
  const url = /^https?:\/\//.test(text) && URL.canParse(text) ? new URL(text) : null
  const isBare = url !== null && url.pathname === '/' && url.search === '' && url.hash === '' && url.username === ''
  if (isBare && url.password === '') return url.origin
  throw new Error(`has an ${name} that is not scheme, host and port; give for example https://s3.example.com`)
}

/** Left out: in the path wherever the bucket cannot be a part of the host's name. */
function readPathStyle(parameters: URLSearchParams, endpoint: string): boolean {
  const given = parameters.get('pathStyle')
  const { hostname } = new URL(endpoint)
  if (given === null) return isLoopback(hostname.replace(/^\[|\]$/g, '')) || !hostname.endsWith('.amazonaws.com')
  if (given === '1' || given === '0') return given === '1'
  throw new Error('has a pathStyle that is neither 1 nor 0')
}

const KEYS = /^([^\s:]{1,128}):([^\s:]{1,256})(?::([^\s:]{1,4096}))?$/

/** `id:secret`, or `id:secret:token` for keys that pass. */
export function readBucketKeys(text: string): Secret<string> {
  if (KEYS.test(text)) return new Secret(text)
  throw new Error('is not id:secret or id:secret:token')
}
