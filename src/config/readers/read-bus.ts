/**
 * Reads where notices between processes go, and where this process is reached by the others. A password goes into a secret at once;
 * the messages here never repeat the text, which may hold it.
 */
import { isIPv6 } from 'node:net'
import { Secret } from '../secrets.ts'
import { readHostName } from './read-network.ts'

/** Servers of one NATS cluster. */
interface NatsAddress {
  /** `host:port`, as the client library takes them. */
  readonly servers: readonly string[]
  readonly isEncrypted: boolean
  readonly user: string | null
  readonly password: Secret<string> | null
}

const EXAMPLE = 'give for example nats://nats.example.com:4222'
const MAX_SERVERS = 16
const MAX_LENGTH = 2048

/** `nats://` or `tls://` addresses, comma separated; user and password may stand in the first. */
export function readNats(text: string): NatsAddress {
  const urls = text.length <= MAX_LENGTH ? text.split(',').map((item) => parse(item.trim())) : []
  const [first] = urls
  if (first == null || urls.includes(null)) throw new Error(`is not the address of a NATS server; ${EXAMPLE}`)
  if (urls.length > MAX_SERVERS) throw new Error(`names more than ${MAX_SERVERS} servers; name a few of them`)
  const known = urls.flatMap((url) => url ?? [])
  if (known.some(({ protocol }) => protocol !== first.protocol))
    throw new Error('names servers with and without encryption; use nats:// or tls:// for all of them')
  if (known.slice(1).some(({ username, password }) => `${username}${password}` !== ''))
    throw new Error('has a user in an address that is not the first; give it once, in the first')
  return {
    servers: known.map(({ hostname, port }) => `${hostname}:${port === '' ? 4222 : port}`),
    isEncrypted: first.protocol === 'tls:',
    user: first.username === '' ? null : decodeURIComponent(first.username),
    password: first.password === '' ? null : new Secret(decodeURIComponent(first.password)),
  }
}

function parse(text: string): URL | null {
  if (!/^(nats|tls):\/\/./.test(text) || !URL.canParse(text)) return null
  const url = new URL(text)
  const isBare = ['', '/'].includes(url.pathname) && url.search === '' && url.hash === '' && url.hostname !== ''
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
