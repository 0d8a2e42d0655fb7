/**
 * One connection to the NATS servers of a service, which is opened again whenever it breaks. Messages are not kept while it is down;
 * its users are notified when it breaks and when it is back. Only the core protocol is used; nothing is stored there.
 */
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect as connectPlain } from 'node:net'
import {
  checkServerIdentity,
  connect as connectSecure,
  type PeerCertificate,
  type ConnectionOptions as TlsOptions,
} from 'node:tls'
import {
  type Authenticator,
  type ConnectionOptions,
  connect,
  type NatsConnection,
  TimeoutError,
} from '@nats-io/transport-node'
import { uptimeMs } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import { createBackoff, settlesWithin, sleep } from '../../../../lib/waiting/sleep.ts'
import { createFileAuthenticator, toRefusal } from './nats-mistake.ts'
import { createMessageProof, type MessageProof, type ProofOptions } from './nats-proof.ts'

export interface NatsOptions extends ProofOptions {
  /** `host:port` each. */
  readonly servers: readonly string[]
  readonly isEncrypted?: boolean
  /** Of the authorities that may sign the servers' certificates; left out: those that the runtime knows. */
  readonly rootCertificateFile?: string | undefined
  readonly clientCertificateFiles?: { readonly certificate: string; readonly key: string } | undefined
  readonly user?: string | undefined
  /** Of the user; without a user it is a token. */
  readonly password?: string | undefined
  /** Of a file with credentials, as the tools of NATS make it. */
  readonly credentialsFile?: string | undefined
  /** The name of the service, a part of all subjects: several services may share the servers. */
  readonly cluster: string
  readonly log: Log
}

interface NatsEvents {
  onAway(): void
  onBack(): void
}

type Listener = (data: Uint8Array, from: string) => void

const OPEN_MS = 5000
// Less, so that the reason of a failure can be found while the start waits.
const CONNECT_MS = 3000
// A connection that lasted this long was a good one: the next attempt need not wait.
const STEADY_MS = 10_000
const CLOSE_MS = 1000
const RETRY_MS = 250
const PING_MS = 5000
/** Of a server that has not said otherwise. */
const LEAST_PAYLOAD_BYTES = 64 * 1024

export class NatsLine implements AsyncDisposable {
  readonly #options: NatsOptions
  readonly #ending = new AbortController()
  readonly #events = new Set<NatsEvents>()
  readonly #subjects = new Map<string, Listener>()
  readonly #proof: MessageProof
  readonly #authenticator: Authenticator | null
  readonly #opened = Promise.withResolvers<void>()
  #connection: NatsConnection | null = null
  #isUp = false
  #isOpening = true
  #reconnects = 0
  #looping: Promise<void> = Promise.resolve()
  #hasWarned = false

  constructor(options: NatsOptions) {
    this.#options = options
    this.#proof = createMessageProof(options)
    const { credentialsFile } = options
    this.#authenticator = credentialsFile === undefined ? null : createFileAuthenticator(credentialsFile)
  }

  get isUp(): boolean {
    return this.#isUp
  }

  get reconnects(): number {
    return this.#reconnects
  }

  /** What the servers carry in one message. */
  get maxPayloadBytes(): number {
    return (this.#connection?.info?.max_payload ?? LEAST_PAYLOAD_BYTES) - this.#proof.maxHeadBytes
  }

  watch(events: NatsEvents): void {
    this.#events.add(events)
  }

  /**
   * Resolves once it is connected, or has tried for a while: servers that are away now are connected to when they are back. Throws
   * NatsRefusal where they are there and no repetition can succeed.
   */
  async open(): Promise<void> {
    this.#looping = this.#keepConnected()
    const isSettled = await settlesWithin(this.#opened.promise, OPEN_MS)
    this.#isOpening = false
    if (isSettled) await this.#opened.promise
  }

  /** Only what processes of this service say is heard. */
  hear(subject: string, listener: Listener): void {
    this.#subjects.set(subject, listener)
    if (this.#connection !== null) this.#subscribe(this.#connection, subject, listener)
  }

  /** False: it is lost. */
  say(subject: string, data: Uint8Array): boolean {
    if (!this.#isUp || this.#connection === null) return false
    try {
      const full = this.#toSubject(subject)
      this.#connection.publish(full, this.#proof.seal(full, data))
      return true
    } catch (error) {
      this.#options.log.debug({ err: error }, 'NATS takes no message')
      return false
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort()
    if (this.#isUp && this.#connection !== null) await settlesWithin(this.#connection.flush(), CLOSE_MS)
    await this.#connection?.close()
    await this.#looping
  }

  /**
   * The client mends a connection that breaks by itself. Until there is one, and when the client gives one up for good (it does so
   * when credentials cannot be read, for one), it is opened anew here.
   */
  async #keepConnected(): Promise<void> {
    const { log } = this.#options
    const { signal } = this.#ending
    const backoff = createBackoff({ firstMs: 100, maxMs: 5000 })
    let hasFailed = false
    while (!signal.aborted) {
      const beganMs = uptimeMs()
      try {
        const connection = await connect(this.#toOptions())
        if (signal.aborted) return await connection.close()
        this.#begin(connection, hasFailed)
        const error = await connection.closed()
        if (signal.aborted) return
        log.warn({ reason: reasonOf(error) }, 'the connection to NATS was lost; it is opened again')
      } catch (error) {
        const refusal = toRefusal(await this.#reasonFor(error), this.#shown)
        // Only a start ends with it: credentials are changed while processes run, on one side first.
        if (refusal !== null && this.#isOpening) return this.#opened.reject(refusal)
        if (!hasFailed)
          log.warn({ reason: refusal?.fault ?? reasonOf(error) }, 'NATS cannot be reached; it is tried again')
      }
      hasFailed = true
      this.#goAway()
      if (uptimeMs() - beganMs > STEADY_MS) backoff.reset()
      await sleep(backoff.nextMs(), signal)
    }
  }

  #begin(connection: NatsConnection, isBack: boolean): void {
    if (this.#connection !== null) this.#reconnects++
    this.#connection = connection
    for (const [subject, listener] of this.#subjects) this.#subscribe(connection, subject, listener)
    this.#isUp = true
    void this.#follow(connection)
    if (isBack) for (const { onBack } of this.#events) onBack()
    this.#opened.resolve()
  }

  #goAway(): void {
    if (!this.#isUp) return
    this.#isUp = false
    for (const { onAway } of this.#events) onAway()
  }

  async #follow(connection: NatsConnection): Promise<void> {
    const { log } = this.#options
    for await (const { type } of connection.status()) {
      if (this.#ending.signal.aborted || connection !== this.#connection) return
      if (type === 'disconnect' && this.#isUp) {
        log.warn({}, 'the connection to NATS is gone; until it is back changes are found by looking')
        this.#goAway()
      } else if (type === 'reconnect') {
        this.#isUp = true
        this.#reconnects++
        log.info({}, 'the connection to NATS is back')
        for (const { onBack } of this.#events) onBack()
      }
    }
  }

  #subscribe(connection: NatsConnection, subject: string, listener: Listener): void {
    const full = this.#toSubject(subject)
    const callback = (error: Error | null, message: { readonly data: Uint8Array }) => {
      if (error !== null) {
        this.#options.log.warn({ reason: error.message, subject }, 'NATS does not let this process listen')
        return
      }
      const proven = this.#proof.open(full, message.data)
      if (proven !== null) listener(proven.data, proven.from)
      else this.#warnOfStrangers(subject)
    }
    connection.subscribe(full, { callback })
  }

  /** Once: whoever floods the subject must not flood the log as well. */
  #warnOfStrangers(subject: string): void {
    if (this.#hasWarned) return
    this.#hasWarned = true
    this.#options.log.warn(
      { subject },
      'what somebody says through NATS is not proven to be of this service; it is ignored',
    )
  }

  #toSubject(subject: string): string {
    return `atelier.${this.#options.cluster}.${subject}`
  }

  /** A timeout of the client library may have a reason that it does not tell. */
  async #reasonFor(error: unknown): Promise<unknown> {
    const { servers, isEncrypted, clientCertificateFiles } = this.#options
    if (!this.#isOpening || isEncrypted !== true || !(error instanceof TimeoutError)) return error
    return (await findHandshakeFault({ server: servers[0] ?? '', clientCertificateFiles })) ?? error
  }

  get #shown() {
    const { credentialsFile, user, password } = this.#options
    if (credentialsFile !== undefined) return 'file'
    return password === undefined ? 'nothing' : user === undefined ? 'token' : 'password'
  }

  #toTls() {
    const { servers, rootCertificateFile: caFile, clientCertificateFiles: own } = this.#options
    const hosts = servers.map((server) => server.replace(/:\d+$/, '').replace(/^\[|\]$/g, ''))
    return {
      ...(caFile !== undefined && { caFile }),
      ...(own !== undefined && { certFile: own.certificate, keyFile: own.key }),
      // The client library leaves the name out for addresses, and the runtime would then accept a certificate for localhost. Servers
      // that others of the cluster have named are known by address too: all must be one of those that were configured.
      checkServerIdentity: (_name: string, certificate: PeerCertificate) => {
        const faults = hosts.map((host) => checkServerIdentity(host, certificate))
        return faults.includes(undefined) ? undefined : faults[0]
      },
    }
  }

  #toOptions(): ConnectionOptions {
    const { servers, isEncrypted, user, password } = this.#options
    return {
      servers: [...servers],
      name: 'atelier',
      timeout: CONNECT_MS,
      maxReconnectAttempts: -1,
      // A user may be refused for a while, as during a change of credentials; the client would give up for good.
      ignoreAuthErrorAbort: true,
      reconnectTimeWait: RETRY_MS,
      reconnectJitter: RETRY_MS,
      pingInterval: PING_MS,
      maxPingOut: 2,
      ...(isEncrypted === true && { tls: this.#toTls() }),
      ...(user !== undefined && { user, pass: password ?? '' }),
      ...(user === undefined && password !== undefined && { token: password }),
      ...(this.#authenticator !== null && { authenticator: this.#authenticator }),
    }
  }
}

/** Without anything that a server could have put into its words about a user. */
function reasonOf(error: unknown): string {
  return error instanceof Error ? error.name : 'unknown'
}

/**
 * Why a server ends connections after the handshake. With TLS 1.3 it refuses the certificate of a client only then, and the client
 * library reports a timeout whatever the reason was. So the handshake is made once more here, to see the reason.
 */
interface ProbeOptions {
  /** `host:port`. */
  readonly server: string
  readonly clientCertificateFiles: { readonly certificate: string; readonly key: string } | undefined
}

// A server that has nothing against the certificate waits for the client to speak.
const ANSWER_MS = 500
const PROBE_MS = 1500

/** null: nothing was wrong with the handshake, or the server could not be asked. */
async function findHandshakeFault(options: ProbeOptions): Promise<Error | null> {
  const { hostname, port } = new URL(`tcp://${options.server}`)
  const socket = connectPlain(Number(port), hostname.replace(/^\[|\]$/g, ''))
  // It may break after the answer is known.
  socket.on('error', () => {})
  const asking = ask().catch(() => null)
  try {
    return (await settlesWithin(asking, PROBE_MS)) ? await asking : null
  } finally {
    socket.destroy()
  }

  async function ask(): Promise<Error | null> {
    // The server speaks first, and in the clear.
    await once(socket, 'data')
    const secure = connectSecure({ socket, ...(await readFiles(options)) })
    secure.on('error', () => {})
    const fault = once(secure, 'error').then(([error]) => error as Error)
    try {
      return (await settlesWithin(fault, ANSWER_MS)) ? await fault : null
    } finally {
      secure.destroy()
    }
  }
}

/** Whose certificate the server has is not the question here, and nothing is said to it. */
async function readFiles({ clientCertificateFiles: own }: ProbeOptions): Promise<TlsOptions> {
  const unchecked = { rejectUnauthorized: false }
  if (own === undefined) return unchecked
  return { ...unchecked, cert: await readFile(own.certificate), key: await readFile(own.key) }
}
