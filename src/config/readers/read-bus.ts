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
  /** As they were given; null: the authorities that the runtime knows. */
  readonly rootCertificate: string | null
  readonly clientCertificate: { readonly certificate: string; readonly key: string } | null
  readonly user: string | null
  /** Of the user; without a user it is a token. */
  readonly password: Secret<string> | null
}

const EXAMPLE = 'give for example nats://nats.example.com:4222'
const PARAMETERS = ['sslrootcert', 'sslcert', 'sslkey']
const MAX_SERVERS = 16
const MAX_LENGTH = 2048

/** `nats://` or `tls://` addresses, comma separated; credentials and files of certificates may be given in the first. */
export function readNats(text: string): NatsAddress {
  const urls = text.length <= MAX_LENGTH ? text.split(',').map((item) => parse(item.trim())) : []
  const [first] = urls
  if (first == null || urls.includes(null)) throw new Error(`is not the address of a NATS server; ${EXAMPLE}`)
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
function readCredentials({ username, password }: URL): Pick<NatsAddress, 'user' | 'password'> {
  if (username === '' && password !== '')
    throw new Error('has a password without a user; give user:password@host, or token@host')
  const [name, word] = [decodeURIComponent(username), decodeURIComponent(password)]
  if (word !== '') return { user: name, password: new Secret(word) }
  return { user: null, password: name === '' ? null : new Secret(name) }
}

function readCertificates({ protocol, searchParams }: URL): Pick<NatsAddress, 'rootCertificate' | 'clientCertificate'> {
  const names = [...searchParams.keys()]
  const unknown = names.find((name) => !PARAMETERS.includes(name))
  if (unknown !== undefined)
    throw new Error(`has the parameter ${JSON.stringify(unknown)}; use ${PARAMETERS.join(', ')}`)
  if (names.length > 0 && protocol !== 'tls:') throw new Error(`has ${names[0]} without encryption; use tls://`)
  const fileOf = (name: string) => searchParams.get(name) || null
  const [rootCertificate, certificate, key] = PARAMETERS.map(fileOf)
  if ((certificate === null) !== (key === null))
    throw new Error('has one of sslcert and sslkey; give the certificate and its key')
  return { rootCertificate, clientCertificate: certificate === null || key === null ? null : { certificate, key } }
}

function parse(text: string): URL | null {
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
