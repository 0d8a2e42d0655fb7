/**
 * Reads addresses of Postgres databases in the way of libpq, the client library of Postgres: several hosts, percent signs, and its
 * parameters with its meanings. Two things are stricter. An address names its user, its database and its host. And a server on
 * another machine needs an sslmode: `allow` and `prefer`, which would also speak in the clear, are refused. Messages never repeat
 * what they are about, because it may hold a password.
 */
import { isIP, isIPv4 } from 'node:net'

/** `require` encrypts and trusts any server; `verify-ca` checks who signed its certificate, `verify-full` also its name. */
export type TlsMode = (typeof TLS_MODES)[number]

export interface PostgresHost {
  /** A name, an IP address, or the folder of a socket, which begins with a slash. */
  readonly host: string
  readonly port: number
}

export interface PostgresAddress {
  /** Tried in this order; at least one. */
  readonly hosts: readonly PostgresHost[]
  readonly user: string
  readonly password: string | null
  readonly database: string
  readonly tls: TlsMode
  /** A file with the authorities that may sign the server's certificate; null: those that the system and the runtime know. */
  readonly rootCertificate: string | null
  /** Files with the client's own certificate and its key. */
  readonly clientCertificate: { readonly certificate: string; readonly key: string } | null
  readonly negotiation: (typeof NEGOTIATIONS)[number]
  readonly channelBinding: (typeof CHANNEL_BINDINGS)[number]
  readonly target: (typeof TARGETS)[number]
  /** Settings of the server, as on its command line. */
  readonly options: string | null
  readonly applicationName: string | null
  /** For each host; null: the caller's own. */
  readonly connectTimeoutSeconds: number | null
}

/** By the names that libpq has for them. */
export type AddressParameters = ReadonlyMap<string, string>

const TLS_MODES = ['disable', 'require', 'verify-ca', 'verify-full'] as const
const NEGOTIATIONS = ['postgres', 'direct'] as const
const CHANNEL_BINDINGS = ['prefer', 'require', 'disable'] as const
const TARGETS = ['any', 'read-write', 'primary'] as const
/** In the order in which an address is written. */
const QUERY_PARAMETERS = [
  ...['sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'sslnegotiation', 'channel_binding', 'target_session_attrs'],
  ...['application_name', 'connect_timeout', 'options'],
]
const OTHER_PARAMETERS = ['host', 'port', 'user', 'password', 'dbname', 'passfile']
const EXAMPLE = 'give for example postgres://atelier@db.example.com:5432/atelier?sslmode=verify-full'
const NO_ADDRESS = `is not the address of a Postgres database; ${EXAMPLE}, and write special characters of user and password as in %40 for @`
const ONE_PLACE =
  'names a host and a folder of a socket, or none of them; give one: …@host/name, or …@/name?host=/run/postgresql'
const DEFAULT_PORT = 5432
const MAX_LENGTH = 4096
const MAX_HOSTS = 8
const MAX_CONNECT_SECONDS = 600

const ADDRESS = /^postgres(?:ql)?:\/\/(?:([^/?]*)@)?([^/?]*)(?:\/([^/?#]*))?(?:\?([^#]*))?$/s
const HOST = /^(?:\[([0-9a-f:.]+)\]|([^:[\]]*))(?::(\d*))?$/i
const HOST_NAME = /^[a-z0-9]([a-z0-9._-]*[a-z0-9.])?$/i

/** What the text says, decoded. Throws an Error whose message goes on after the name of what held the text. */
export function parseAddress(text: string): AddressParameters {
  const [match, userinfo, authority = '', database = '', query = ''] = ADDRESS.exec(text) ?? []
  if (match === undefined || text.length > MAX_LENGTH) throw new Error(NO_ADDRESS)
  const found = new Map<string, string>()
  const set = (name: string, value: string) => {
    if (value !== '') found.set(name, value)
  }
  const colon = (userinfo ?? '').indexOf(':')
  set('user', decode(colon === -1 ? (userinfo ?? '') : (userinfo ?? '').slice(0, colon)))
  set('password', colon === -1 ? '' : decode((userinfo ?? '').slice(colon + 1)))
  set('dbname', decode(database))
  const hosts = authority.split(',').map((part) => HOST.exec(part))
  if (hosts.includes(null)) throw new Error(NO_ADDRESS)
  if (authority !== '') {
    set('host', hosts.map((host) => decode(host?.[1] ?? host?.[2] ?? '')).join())
    // One comma for each further host, so that ports stay with theirs; nothing if no host has one.
    set('port', hosts.some((host) => host?.[3]) ? hosts.map((host) => host?.[3] ?? '').join() : '')
  }
  for (const pair of query.split('&').filter((part) => part !== '')) addParameter(pair, found)
  return found
}

function addParameter(pair: string, found: Map<string, string>): void {
  const equals = pair.indexOf('=')
  if (equals === -1) throw new Error(NO_ADDRESS)
  const [name, value] = [decode(pair.slice(0, equals)), decode(pair.slice(equals + 1))]
  // As libpq does, for addresses that were made for another driver.
  if (name === 'ssl' && value === 'true') {
    addParameter('sslmode=require', found)
    return
  }
  if (!QUERY_PARAMETERS.includes(name) && !OTHER_PARAMETERS.includes(name)) {
    throw new Error(`has the parameter ${JSON.stringify(name)}; known are ${QUERY_PARAMETERS.join(', ')}`)
  }
  if (name === 'host' && found.has('host')) throw new Error(ONE_PLACE)
  if (found.has(name)) throw new Error(`names ${name} twice; keep one of them`)
  if (value !== '') found.set(name, value)
}

/** A plus sign is a plus sign: addresses are no forms. */
function decode(text: string): string {
  try {
    const decoded = decodeURIComponent(text)
    if (!decoded.includes('\0')) return decoded
  } catch {}
  throw new Error('has a % that is not followed by the two digits of a character; write a percent sign as %25')
}

/** Checks the parameters and gives them their meanings. Throws like `parseAddress`. */
export function readAddress(given: AddressParameters): PostgresAddress {
  const hosts = readHosts(given)
  const user = given.get('user')
  if (user === undefined) throw new Error(`names no user; ${EXAMPLE}`)
  const database = given.get('dbname')
  if (database === undefined) throw new Error(`names no database; ${EXAMPLE}`)
  const target = readChoice(given, 'target_session_attrs', TARGETS, hosts.length > 1 ? 'read-write' : 'any')
  return {
    ...{ hosts, user, database, target },
    password: given.get('password') ?? null,
    ...readTls(given, hosts),
    options: given.get('options') ?? null,
    applicationName: given.get('application_name') ?? null,
    connectTimeoutSeconds: readSeconds(given.get('connect_timeout')),
  }
}

function readHosts(given: AddressParameters): readonly PostgresHost[] {
  const names = given.get('host')?.split(',') ?? []
  const ports = given.get('port')?.split(',') ?? ['']
  if (names.length === 0) throw new Error(ONE_PLACE)
  if (names.length > MAX_HOSTS) throw new Error(`names more than ${MAX_HOSTS} hosts; leave some out`)
  if (ports.length !== 1 && ports.length !== names.length) {
    throw new Error('names more or fewer ports than hosts; give one port for all, or one for each')
  }
  const isSocket = (name: string) => name.startsWith('/')
  if (!names.every((name) => isSocket(name) || isIP(name) !== 0 || HOST_NAME.test(name))) throw new Error(NO_ADDRESS)
  if (names.some(isSocket) && !names.every(isSocket)) throw new Error(ONE_PLACE)
  return names.map((host, index) => ({ host, port: readPort(ports[ports.length === 1 ? 0 : index]) }))
}

function readPort(text: string): number {
  const port = text === '' ? DEFAULT_PORT : /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (port >= 1 && port <= 65_535) return port
  throw new Error('has a port that is not a number from 1 to 65535; correct it')
}

function readSeconds(text: string | undefined): number | null {
  if (text === undefined) return null
  const seconds = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (seconds >= 1 && seconds <= MAX_CONNECT_SECONDS) return seconds
  throw new Error(`has a connect_timeout that is not a number of seconds from 1 to ${MAX_CONNECT_SECONDS}; correct it`)
}

function readChoice<Choice extends string>(
  given: AddressParameters,
  name: string,
  choices: readonly Choice[],
  fallback: Choice,
): Choice {
  const text = given.get(name)
  const choice = text === undefined ? fallback : choices.find((known) => known === text)
  if (choice !== undefined) return choice
  throw new Error(`has a ${name} that is not one of ${choices.join(', ')}`)
}

type TlsParts = Pick<
  PostgresAddress,
  'tls' | 'rootCertificate' | 'clientCertificate' | 'negotiation' | 'channelBinding'
>

function readTls(given: AddressParameters, hosts: readonly PostgresHost[]): TlsParts {
  const root = given.get('sslrootcert')
  const tls = readTlsMode(given, hosts)
  const [certificate, key] = [given.get('sslcert'), given.get('sslkey')]
  if ((certificate === undefined) !== (key === undefined)) {
    throw new Error('names one of sslcert and sslkey; give both, the certificate and its key')
  }
  const channelBinding = readChoice(given, 'channel_binding', CHANNEL_BINDINGS, 'prefer')
  const negotiation = readChoice(given, 'sslnegotiation', NEGOTIATIONS, 'postgres')
  const pointless = [
    ...(root === undefined ? [] : ['sslrootcert']),
    ...(certificate === undefined ? [] : ['sslcert']),
    ...(channelBinding === 'require' ? ['channel_binding=require'] : []),
    ...(negotiation === 'direct' ? ['sslnegotiation=direct'] : []),
  ]
  if (tls === 'disable' && pointless.length > 0) {
    throw new Error(`has ${pointless[0]}, which needs TLS; add sslmode=verify-full, or leave it out`)
  }
  if (root === 'system' && tls !== 'verify-full') {
    throw new Error(
      'has sslrootcert=system, and public authorities sign for everybody; use it with sslmode=verify-full',
    )
  }
  if (tls === 'verify-ca' && root === undefined) {
    throw new Error('has sslmode=verify-ca and no sslrootcert; name the file of your authority, or use verify-full')
  }
  return {
    // As in libpq: a root certificate is there to be checked against.
    tls: tls === 'require' && root !== undefined ? 'verify-ca' : tls,
    rootCertificate: root === undefined || root === 'system' ? null : root,
    clientCertificate: certificate === undefined || key === undefined ? null : { certificate, key },
    ...{ negotiation, channelBinding },
  }
}

function readTlsMode(given: AddressParameters, hosts: readonly PostgresHost[]): TlsMode {
  const text = given.get('sslmode')
  if (text !== undefined) {
    const mode = TLS_MODES.find((known) => known === text)
    if (mode !== undefined) return mode
    throw new Error(`has an sslmode that is not one of ${TLS_MODES.join(', ')}`)
  }
  if (given.get('sslrootcert') === 'system') return 'verify-full'
  if (hosts.every(({ host }) => isNear(host))) return 'disable'
  throw new Error(
    'is on another machine and has no sslmode; add ?sslmode=verify-full, or sslmode=disable where nobody can listen',
  )
}

function isNear(host: string): boolean {
  return host.startsWith('/') || host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))
}

/** The address as text, without its password: reading it gives the same address. */
export function writeAddress(address: PostgresAddress): string {
  const { clientCertificate, rootCertificate, tls, options, connectTimeoutSeconds: seconds } = address
  const values: Readonly<Record<string, string | null>> = {
    sslmode: tls,
    sslrootcert: rootCertificate,
    sslcert: clientCertificate?.certificate ?? null,
    sslkey: clientCertificate?.key ?? null,
    sslnegotiation: address.negotiation,
    channel_binding: address.channelBinding,
    target_session_attrs: address.target,
    application_name: address.applicationName,
    connect_timeout: seconds === null ? null : `${seconds}`,
    options,
  }
  const query = QUERY_PARAMETERS.flatMap((name) => {
    const value = values[name]
    return value === null ? [] : [`${name}=${encodeURIComponent(value)}`]
  })
  const hosts = address.hosts.map(({ host, port }) => `${toHostText(host)}:${port}`).join()
  return `postgres://${encodeURIComponent(address.user)}@${hosts}/${encodeURIComponent(address.database)}?${query.join('&')}`
}

/** The address for messages: without user, password and parameters. */
export function showAddress({ hosts, database }: Pick<PostgresAddress, 'hosts' | 'database'>): string {
  const shown = hosts.map(({ host, port }) => {
    const name = host.includes(':') ? `[${host}]` : host
    return port === DEFAULT_PORT ? name : `${name}:${port}`
  })
  return `postgres://${shown.join()}/${encodeURI(database)}`
}

function toHostText(host: string): string {
  return isIP(host) === 6 ? `[${host}]` : encodeURIComponent(host)
}
