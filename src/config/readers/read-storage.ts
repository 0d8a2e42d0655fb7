/**
 * Reads the addresses of a Postgres database and of a bucket on S3-compatible storage. A password goes into a secret at once, and
 * messages never repeat a text that may hold one. Keys of a bucket are never part of its address.
 */
import {
  type AddressParameters,
  type PostgresAddress,
  parseAddress,
  readAddress,
} from '../../../lib/postgres/address.ts'
import { Secret } from '../secrets.ts'
import type { Environment } from '../settings/setting.ts'
import { isLoopback } from './read-network.ts'

/** The variables of libpq, each by the parameter of the address of a database for which it stands in. */
export const POSTGRES_ENV = {
  host: 'PGHOST',
  port: 'PGPORT',
  user: 'PGUSER',
  password: 'PGPASSWORD',
  passfile: 'PGPASSFILE',
  dbname: 'PGDATABASE',
  sslmode: 'PGSSLMODE',
  sslrootcert: 'PGSSLROOTCERT',
  sslcert: 'PGSSLCERT',
  sslkey: 'PGSSLKEY',
  sslnegotiation: 'PGSSLNEGOTIATION',
  channel_binding: 'PGCHANNELBINDING',
  target_session_attrs: 'PGTARGETSESSIONATTRS',
  options: 'PGOPTIONS',
  application_name: 'PGAPPNAME',
  connect_timeout: 'PGCONNECT_TIMEOUT',
} as const

export interface GivenDatabase {
  /** What the address says, except its password. */
  readonly parameters: AddressParameters
  readonly password: Secret<string> | null
}

export function readDatabase(text: string): GivenDatabase {
  const parameters = new Map(parseAddress(text))
  const password = parameters.get('password')
  parameters.delete('password')
  return { parameters, password: password === undefined ? null : new Secret(password) }
}

const ABOUT_TLS = ['sslrootcert', 'sslcert', 'sslkey', 'sslnegotiation', 'channel_binding']

/** The whole address; a message names the variables that are part of it. */
export function completeAddress({ parameters }: GivenDatabase, env: Environment, label: string): PostgresAddress {
  const isPlain = (parameters.get('sslmode') ?? env[POSTGRES_ENV.sslmode]) === 'disable'
  const more = Object.entries(POSTGRES_ENV).flatMap(([name, variable]) => {
    const value = env[variable]
    if (value === undefined || value === '' || name === 'password' || parameters.has(name)) return []
    return isPlain && ABOUT_TLS.includes(name) ? [] : [{ name, variable, value }]
  })
  try {
    return readAddress(new Map([...parameters, ...more.map(({ name, value }) => [name, value] as const)]))
  } catch (error) {
    const added = more.length === 0 ? '' : `, with ${more.map(({ variable }) => variable).join(', ')}`
    throw new Error(`database (from ${label}${added}) ${(error as Error).message}`)
  }
}

/** The password that a file in the way of libpq has for this address: lines of host:port:database:user:password. */
export function findInPassFile(text: string, { hosts, database, user }: PostgresAddress): string | null {
  for (const { host, port } of hosts) {
    const wanted = [host, `${port}`, database, user]
    for (const line of text.split(/\r?\n/)) {
      if (line.startsWith('#')) continue
      // A backslash makes a colon or a backslash part of its field.
      const fields = /^((?:\\.|[^:\\])*):((?:\\.|[^:\\])*):((?:\\.|[^:\\])*):((?:\\.|[^:\\])*):(.+)$/s
        .exec(line)
        ?.slice(1)
      const [password, ...keys] = (fields ?? []).map((field) => field.replaceAll(/\\(.)/gs, '$1')).reverse()
      if (password !== undefined && keys.reverse().every((key, index) => key === '*' || key === wanted[index]))
        return password
    }
  }
  return null
}

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
  /** A file with the keys, as it was given. */
  readonly keys: string | null
  /** For messages. */
  readonly shown: string
}

const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
const PREFIX = /^[A-Za-z0-9!_.*()-]+(\/[A-Za-z0-9!_.*()-]+)*$/
const REGION = /^[a-z0-9-]{1,64}$/
const BUCKET_PARAMETERS = ['endpoint', 'publicEndpoint', 'region', 'pathStyle', 'keys']
const DEFAULT_REGION = 'us-east-1'
const BUCKET_EXAMPLE =
  'give for example s3://bucket/prefix?endpoint=https://s3.example.com&region=eu-central-1&pathStyle=1'
const MAX_LENGTH = 2048

export function readBucket(text: string): BucketAddress {
  const url = text.startsWith('s3://') && text.length <= MAX_LENGTH && URL.canParse(text) ? new URL(text) : null
  if (url === null || url.hash !== '' || url.port !== '')
    throw new Error(`is not the address of a bucket; ${BUCKET_EXAMPLE}`)
  if (url.username !== '' || url.password !== '')
    throw new Error('holds a user name; give the keys in ATELIER_BLOBS_KEYS, or a file of them with keys=<file>')
  const unknown = [...url.searchParams.keys()].find((name) => !BUCKET_PARAMETERS.includes(name))
  if (unknown !== undefined)
    throw new Error(`has the parameter ${JSON.stringify(unknown)}; use ${BUCKET_PARAMETERS.join(', ')}`)
  const bucket = url.hostname
  if (!BUCKET.test(bucket)) throw new Error(`names no bucket; ${BUCKET_EXAMPLE}`)
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
    keys: url.searchParams.get('keys') || null,
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
