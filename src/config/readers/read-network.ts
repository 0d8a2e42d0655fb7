/**
 * Readers for network settings: the address to listen on, origins, host names, proxies, NATS servers. They are strict, because a
 * setting that exposes the service more than it seems to must be refused at the start. Messages about NATS never repeat the text,
 * which may hold a password.
 */
import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net'
import { Secret } from '../secrets.ts'
import { type Block, readBlock } from './read-choice.ts'

const HOST_NAME = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/i

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/** Whether only this machine can reach a server that listens on `host`. The empty host listens everywhere. */
export function isLoopback(host: string): boolean {
  if (host.toLowerCase() === 'localhost') return true
  if (isIP(host) === 0) return false
  return loopback.check(host, isIPv4(host) ? 'ipv4' : 'ipv6')
}

/** An address or name to listen on, without brackets. Empty means every interface, as in most servers. */
export function readListenHost(text: string): string {
  const host = text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1) : text
  if (host === '' || isIP(host) !== 0 || HOST_NAME.test(host)) return host
  throw new Error('is not an address or host name; give for example 127.0.0.1 (put the port into "port")')
}

/** A host name that clients may put into `Host`, lower case, without a port; an IPv6 address without brackets. */
export function readHostName(text: string): string {
  const host = readListenHostOrFail(text)
  if (host !== null) return host.toLowerCase()
  throw new Error(
    `has the item ${JSON.stringify(text)}, which is not a plain host name; give for example atelier.example.com`,
  )
}

function readListenHostOrFail(text: string): string | null {
  try {
    const host = readListenHost(text)
    return host === '' ? null : host
  } catch {
    return null
  }
}

function parseUrl(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null
}

function isBareHttpOrigin(url: URL): boolean {
  const isHttp = url.protocol === 'http:' || url.protocol === 'https:'
  return (
    isHttp && url.pathname === '/' && url.search === '' && url.hash === '' && url.username === '' && url.password === ''
  )
}

/** An exact browser origin. `*` and anything beyond scheme, host and port is refused: the contract wants an exact list. */
export function readCorsOrigin(text: string): string {
  const url = parseUrl(text)
  // `?` and `#` leave no trace in a parsed URL when nothing follows them.
  if (url !== null && isBareHttpOrigin(url) && !text.endsWith('/') && !/[?#*]/.test(text)) return url.origin
  throw new Error(
    `has the item ${JSON.stringify(text)}, which is not an exact origin; give scheme, host and port only, for example https://app.example.com`,
  )
}

/** The base of absolute links: scheme, host and port. A path belongs to the mount prefix. */
export function readPublicUrl(text: string): string {
  const url = parseUrl(text)
  if (url !== null && isBareHttpOrigin(url) && !/[?#]/.test(text)) return url.origin
  throw new Error(
    'is not a bare http(s) address; give for example https://atelier.example.com and put a path into "mountPrefix"',
  )
}

const PREFIX = /^(\/[A-Za-z0-9._~-]+){1,8}$/

/** '' or '/some/prefix'. */
export function readMountPrefix(text: string): string {
  if (text === '' || text === '/') return ''
  const hasDots = text.split('/').some((segment) => segment === '.' || segment === '..')
  if (PREFIX.test(text) && !hasDots) return text
  throw new Error('is not a path prefix; begin with a slash and end without one, for example /deployment/demo')
}

/** An address or a range of addresses. */
interface Cidr {
  readonly address: string
  readonly prefixBits: number
  readonly family: 'ipv4' | 'ipv6'
}

export function readCidr(text: string): Cidr {
  const [address, bits, ...rest] = text.split('/')
  const version = isIP(address)
  const widest = version === 4 ? 32 : 128
  const prefixBits = bits === undefined ? widest : /^\d{1,3}$/.test(bits) ? Number(bits) : -1
  if (version !== 0 && rest.length === 0 && prefixBits >= 0 && prefixBits <= widest) {
    return { address, prefixBits, family: version === 4 ? 'ipv4' : 'ipv6' }
  }
  throw new Error(
    `has the item ${JSON.stringify(text)}, which is not an address range; give for example 10.0.0.0/8 or ::1`,
  )
}

/** Servers of one NATS cluster. */
interface NatsAddress {
  /** `host:port`, as the client library takes them. */
  readonly servers: readonly string[]
  readonly isEncrypted: boolean
  /** As they were given; null: the authorities that the runtime knows. */
  readonly rootCertificate: string | null
  readonly clientCertificate: { readonly certificate: string; readonly key: string } | null
  readonly user: string | null
  /** Of the user; without a user it is a token. */
  readonly password: Secret<string> | null
  /** A file of them, as it was given. */
  readonly credentials: string | null
}

const NATS_EXAMPLE = 'give for example nats://nats.example.com:4222'
const NATS_PARAMETERS = ['sslrootcert', 'sslcert', 'sslkey', 'credentials']
const MAX_SERVERS = 16
const MAX_LENGTH = 2048

/** `nats://` or `tls://` addresses, comma separated; credentials and files of certificates may be given in the first. */
export function readNats(text: string): NatsAddress {
  const urls = text.length <= MAX_LENGTH ? text.split(',').map((item) => parseNats(item.trim())) : []
  const [first] = urls
  if (first == null || urls.includes(null)) throw new Error(`is not the address of a NATS server; ${NATS_EXAMPLE}`)
  if (urls.length > MAX_SERVERS) throw new Error(`names more than ${MAX_SERVERS} servers; name a few of them`)
  const known = urls.flatMap((url) => url ?? [])
  if (known.some(({ protocol }) => protocol !== first.protocol))
    throw new Error('names servers with and without encryption; use nats:// or tls:// for all of them')
  if (known.slice(1).some(({ username, password, search }) => `${username}${password}${search}` !== ''))
    throw new Error('has a user or a parameter in an address that is not the first; give it once, in the first')
  return {
    servers: known.map(({ hostname, port }) => `${hostname}:${port === '' ? 4222 : port}`),
    isEncrypted: first.protocol === 'tls:',
    ...readCertificates(first),
    ...readCredentials(first),
  }
}

/** A name alone is a token, as for all clients of NATS. */
function readCredentials({
  username,
  password,
  searchParams,
}: URL): Pick<NatsAddress, 'user' | 'password' | 'credentials'> {
  const credentials = searchParams.get('credentials') || null
  if (credentials !== null && username !== '')
    throw new Error('has a user or a token, and names a file of credentials; keep one of them')
  if (username === '' && password !== '')
    throw new Error('has a password without a user; give user:password@host, or token@host')
  const [name, word] = [decodeURIComponent(username), decodeURIComponent(password)]
  if (word !== '') return { user: name, password: new Secret(word), credentials }
  return { user: null, password: name === '' ? null : new Secret(name), credentials }
}

function readCertificates({ protocol, searchParams }: URL): Pick<NatsAddress, 'rootCertificate' | 'clientCertificate'> {
  const names = [...searchParams.keys()]
  const unknown = names.find((name) => !NATS_PARAMETERS.includes(name))
  if (unknown !== undefined)
    throw new Error(`has the parameter ${JSON.stringify(unknown)}; use ${NATS_PARAMETERS.join(', ')}`)
  const aboutTls = names.find((name) => name !== 'credentials')
  if (aboutTls !== undefined && protocol !== 'tls:') throw new Error(`has ${aboutTls} without encryption; use tls://`)
  const fileOf = (name: string) => searchParams.get(name) || null
  const [rootCertificate, certificate, key] = NATS_PARAMETERS.map(fileOf)
  if ((certificate === null) !== (key === null))
    throw new Error('has one of sslcert and sslkey; give the certificate and its key')
  return { rootCertificate, clientCertificate: certificate === null || key === null ? null : { certificate, key } }
}

function parseNats(text: string): URL | null {
  if (!/^(nats|tls):\/\/./.test(text) || !URL.canParse(text)) return null
  const url = new URL(text)
  const isBare = ['', '/'].includes(url.pathname) && url.hash === '' && url.hostname !== ''
  try {
    decodeURIComponent(`${url.username}${url.password}`)
  } catch {
    return null
  }
  return isBare ? url : null
}

interface Advertised {
  readonly scheme: 'http' | 'https'
  /** With brackets where it is an IPv6 address. */
  readonly host: string
  /** null: the one that is listened on. */
  readonly port: number | null
}

/** A host or address by which other processes reach this one, or a whole `http://host:port`. */
export function readAdvertised(text: string): Advertised {
  const isUrl = /^https?:\/\//.test(text)
  const url = parseOrigin(isUrl ? text : `http://${isIPv6(text) ? `[${text}]` : text}`)
  if (url === null)
    throw new Error('is not where other processes reach this one; give for example 10.0.0.5 or http://10.0.0.5:8190')
  const scheme = url.protocol === 'https:' ? 'https' : 'http'
  // A whole address means what it says; a bare host has the port that is listened on.
  const port = url.port !== '' ? Number(url.port) : isUrl ? (scheme === 'https' ? 443 : 80) : null
  return { scheme, host: url.hostname, port }
}

function parseOrigin(text: string): URL | null {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || url.pathname !== '/' || `${url.search}${url.hash}${url.username}${url.password}` !== '')
    return null
  try {
    readHostName(url.hostname)
    return url
  } catch {
    return null
  }
}

/** From where files of callers are fetched. */
export interface InputUrls {
  readonly isPublic: boolean
  /** Host names, lower case; with a leading dot everything below them too. */
  readonly hosts: readonly string[]
  /** Exact, trusted as they are. */
  readonly origins: readonly string[]
  /** Also for workflows that are no endpoints. */
  readonly isForJobs: boolean
}

type InputUrlsBlock = { readonly kind: 'list'; readonly from: InputUrls } | Block

/** A list, or where an object with a list and headers stands. */
export function readInputUrls(text: string): InputUrlsBlock {
  const isBlock = text.trimStart().startsWith('{') || /^[^,]+\.json$/i.test(text)
  return isBlock ? readBlock(text) : { kind: 'list', from: readInputHosts(text) }
}

const MAX_INPUT_HOSTS = 256

export function readInputHosts(text: string): InputUrls {
  const items = text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
  if (items.length === 0 || items.length > MAX_INPUT_HOSTS)
    throw new Error(
      `names no host, or more than ${MAX_INPUT_HOSTS}; give off, public, or hosts such as cdn.example.com`,
    )
  if (items.includes('off') && items.length > 1) throw new Error('has off beside other items; give off alone')
  const named = items.filter((item) => !['off', 'public', 'jobs'].includes(item))
  if (items.includes('jobs') && items.length === 1) throw new Error('has jobs alone; say from where: public, or hosts')
  const isOrigin = (item: string) => item.includes('://')
  return {
    isPublic: items.includes('public'),
    hosts: named.filter((item) => !isOrigin(item)).map(readInputHost),
    origins: named.filter(isOrigin).map(readCorsOrigin),
    isForJobs: items.includes('jobs'),
  }
}

/** A name of the public internet has a dot in it. */
function readInputHost(text: string): string {
  const bare = text.startsWith('.') ? text.slice(1) : text
  if (bare.includes('.') && HOST_NAME.test(bare)) return text.toLowerCase()
  throw new Error(
    `has the item ${JSON.stringify(text)}, which is no host; give off, public, jobs, hosts such as cdn.example.com or origins such as http://minio.lan:9000`,
  )
}

/** The address of a collector of traces; null: an empty text, which counts as not set. */
export function readOtlpUrl(text: string): string | null {
  if (text === '') return null
  const url = URL.parse(text)
  if (url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.hash === '') return text
  throw new Error('is not an http or https address without a user name in it; give for example http://127.0.0.1:4318')
}
