/**
 * Connections to Postgres. Here alone an address and a password become what the client library wants: given an address, the library
 * itself prefers that address's empty password to the password beside it, has other meanings for `sslmode`, knows one host only, and
 * fills gaps from variables of the environment. So it never sees the address, and every gap is filled here.
 */
import { readFileSync } from 'node:fs'
import type { Duplex } from 'node:stream'
import { getCACertificates, type ConnectionOptions as TlsOptions } from 'node:tls'
import { Client, type ClientConfig, Pool, type PoolConfig } from 'pg'
import { settlesWithin } from '../waiting/sleep.ts'
import { type PostgresAddress, type PostgresHost, parseAddress, readAddress } from './address.ts'

export interface PostgresPlace {
  /** As libpq reads it; files in it are absolute. */
  readonly url: string
  /** In place of what the address says. */
  readonly password?: string | undefined
}

export interface ClientNeeds {
  /** Of the server, for this connection. They win over those that the address names. */
  readonly settings?: Readonly<Record<string, string>>
  /** What the server calls this program, unless the address says otherwise. */
  readonly name?: string
  readonly types?: ClientConfig['types']
  /** Statements leave without waiting for the answers to those before them. */
  readonly pipeline?: boolean
}

interface DriverOptions extends ClientConfig {
  readonly finder: HostFinder | null
  readonly needsBinding: boolean
}

const CONNECT_MS = 5000
const CLOSE_MS = 1000
const BOUND = 'SCRAM-SHA-256-PLUS'

/** Not connected yet. An error of its connection fails what waits on it; beyond that it need not be listened to. */
export function createClient(place: PostgresPlace, needs: ClientNeeds = {}): Client {
  return new ServerClient(toDriverOptions(place, needs))
}

export function createPool(
  place: PostgresPlace,
  needs: ClientNeeds & Pick<PoolConfig, 'max' | 'idleTimeoutMillis'>,
): Pool {
  const { max, idleTimeoutMillis } = needs
  return new Pool({
    ...toDriverOptions(place, needs),
    max,
    idleTimeoutMillis,
    Client: ServerClient,
  } as unknown as PoolConfig)
}

/** The library has no way to end a connection that does not answer: its own waits for the server to say goodbye. */
export function streamOf(client: unknown): Duplex {
  return (client as { readonly connection: { readonly stream: Duplex } }).connection.stream
}

function toDriverOptions({ url, password }: PostgresPlace, { settings = {}, ...needs }: ClientNeeds): DriverOptions {
  const address = readAddress(parseAddress(url))
  const [{ host, port }] = address.hosts
  const given = password ?? address.password
  const own = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`)
  const { connectTimeoutSeconds: seconds, channelBinding } = address
  const ssl = toTls(address)
  const options: Omit<DriverOptions, 'finder'> = {
    ...{ host, port, user: address.user, database: address.database, ssl },
    // A function, so that the library asks neither the environment nor a file, and shows no password where it shows its options.
    password: () => {
      if (given !== null) return given
      throw Object.assign(new Error('the server asks for a password, and none is given'), { code: 'NO_PASSWORD' })
    },
    sslnegotiation: ssl === false ? 'postgres' : address.negotiation,
    enableChannelBinding: ssl !== false && channelBinding !== 'disable',
    needsBinding: channelBinding === 'require',
    connectionTimeoutMillis: seconds === null ? CONNECT_MS : seconds * 1000,
    keepAlive: true,
    application_name: address.applicationName ?? needs.name ?? 'node',
    // The last of several values for one setting counts.
    options: [...(address.options === null ? [] : [address.options]), ...own].join(' ') || ' ',
    pipeline: needs.pipeline === true,
    ...(needs.types !== undefined && { types: needs.types }),
  }
  const isOneOfMany = address.hosts.length > 1 || address.target !== 'any'
  return { ...options, finder: isOneOfMany ? new HostFinder(address, options) : null }
}

function toTls({ hosts, tls, rootCertificate, clientCertificate }: PostgresAddress): TlsOptions | false {
  if (tls === 'disable' || hosts[0].host.startsWith('/')) return false
  const own = clientCertificate !== null && {
    cert: readFileSync(clientCertificate.certificate),
    key: readFileSync(clientCertificate.key),
  }
  if (tls === 'require') return { ...own, rejectUnauthorized: false }
  const ca =
    rootCertificate === null
      ? [...getCACertificates('default'), ...getCACertificates('system')]
      : readFileSync(rootCertificate)
  // The name in the certificate is what sets the two apart.
  return tls === 'verify-full' ? { ...own, ca } : { ...own, ca, checkServerIdentity: () => undefined }
}

class ServerClient extends Client {
  readonly #finder: HostFinder | null
  readonly #needsBinding: boolean
  #isBound = false

  constructor(options: DriverOptions) {
    super(options)
    this.#finder = options.finder
    this.#needsBinding = options.needsBinding
    // An error event without a listener would end the process. After one, the server may have handed over to another.
    this.on('error', () => this.#finder?.forget())
    if (options.needsBinding) this.#refuseWithoutBinding(options.password as () => string)
  }

  /** The library asks for the password before it answers the server, whatever the server wants it for. */
  #refuseWithoutBinding(givePassword: () => string): void {
    const { connection } = this as unknown as { readonly connection: NodeJS.EventEmitter }
    connection.prependListener('authenticationSASL', ({ mechanisms }: { readonly mechanisms: readonly string[] }) => {
      this.#isBound = mechanisms.includes(BOUND)
    })
    Object.assign(this, {
      password: () => {
        this.#mustBeBound()
        return givePassword()
      },
    })
  }

  #mustBeBound(): void {
    if (!this.#needsBinding || this.#isBound) return
    const message =
      'the server does not bind the password to the TLS connection, and channel_binding=require asks for it'
    throw Object.assign(new Error(message), { code: 'NO_BINDING' })
  }

  override connect(): Promise<Client>
  override connect(callback: (error: Error | null, client?: Client) => void): void
  override connect(callback?: (error: Error | null, client?: Client) => void): Promise<Client> | undefined {
    const connecting = this.#connect()
    if (callback === undefined) return connecting
    connecting.then(
      () => callback(null, this),
      (error: Error) => callback(error),
    )
    return undefined
  }

  async #connect(): Promise<Client> {
    if (this.#finder !== null) Object.assign(this, await this.#finder.find())
    try {
      await super.connect()
      this.#mustBeBound()
      await this.#finder?.mustFit(this)
      return this
    } catch (error) {
      this.#finder?.forget()
      streamOf(this).destroy()
      throw error
    }
  }
}

/**
 * Finds the host to use among several: the first that answers and is of the wanted kind. It is kept until a connection to it fails;
 * then all are asked again, in their order. As in libpq, a host that refuses the user ends the search.
 */
class HostFinder {
  readonly #address: PostgresAddress
  readonly #options: Omit<DriverOptions, 'finder'>
  #found: Promise<PostgresHost> | null = null

  constructor(address: PostgresAddress, options: Omit<DriverOptions, 'finder'>) {
    this.#address = address
    this.#options = options
  }

  forget(): void {
    this.#found = null
  }

  find(): Promise<PostgresHost> {
    this.#found ??= this.#look()
    const finding = this.#found
    finding.catch(() => {
      if (this.#found === finding) this.#found = null
    })
    return finding
  }

  async #look(): Promise<PostgresHost> {
    const { hosts } = this.#address
    // One host is connected to at once: what it is is asked there.
    if (hosts.length === 1) return hosts[0]
    const faults: string[] = []
    for (const place of hosts) {
      const client = new ServerClient({ ...this.#options, ...place, finder: null })
      try {
        await client.connect()
        await this.mustFit(client)
        await settlesWithin(client.end(), CLOSE_MS)
        return place
      } catch (error) {
        if (!isHostAway(error)) throw error
        faults.push(`${place.host}:${place.port} ${(error as Error).message}`)
      } finally {
        streamOf(client).destroy()
      }
    }
    throw toHostError(`no host can be used: ${faults.join('; ')}`)
  }

  /** Throws when the server is not of the wanted kind. */
  async mustFit(client: Client): Promise<void> {
    const { target } = this.#address
    if (target === 'any') return
    const asked = {
      text: `SELECT pg_is_in_recovery() AS standby, current_setting('transaction_read_only') = 'on' AS "readOnly"`,
      query_timeout: this.#options.connectionTimeoutMillis,
    }
    const [{ standby, readOnly }] = (await client.query<{ standby: boolean; readOnly: boolean }>(asked)).rows
    if (standby) throw toHostError('is a standby')
    if (readOnly && target === 'read-write') throw toHostError('takes no writes')
  }
}

// Of SQL: the client cannot establish a connection.
const NO_CONNECTION = '08001'

function toHostError(message: string): Error {
  return Object.assign(new Error(message), { code: NO_CONNECTION })
}

const AWAY_CODES = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'],
  // No socket is in its folder; the server starts, stops, or takes no more connections.
  ...['ENOENT', '57P01', '57P02', '57P03', '53300'],
])
// The library has no codes for these.
const AWAY_WORDS =
  /connection terminated|timeout expired|timeout exceeded when trying to connect|query read timeout|client has encountered a connection error|not queryable|connection error|client was closed/i

/** The server cannot be reached, or not now. */
export function isHostAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code = '' } = error as NodeJS.ErrnoException
  if (AWAY_CODES.has(code) || code.startsWith('08') || (code === '' && AWAY_WORDS.test(error.message))) return true
  return error instanceof AggregateError && error.errors.some(isHostAway)
}
