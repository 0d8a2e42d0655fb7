/**
 * One connection to the NATS servers of a service, which is opened again whenever it breaks. Nothing is kept while it is away:
 * whoever uses it is told when it goes and when it is back. Only the core protocol is used; nothing is stored there.
 */
import { readFileSync } from 'node:fs'
import { type ConnectionOptions, connect, credsAuthenticator, type NatsConnection } from '@nats-io/transport-node'
import type { Log } from '../../../../lib/log.ts'
import { createBackoff } from '../../../../lib/waiting/backoff.ts'
import { settlesWithin, sleep } from '../../../../lib/waiting/sleep.ts'

export interface NatsOptions {
  /** `host:port` each. */
  readonly servers: readonly string[]
  readonly isEncrypted?: boolean
  readonly user?: string | undefined
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

const OPEN_MS = 5000
const CLOSE_MS = 1000
const RETRY_MS = 250
const PING_MS = 5000
/** Of a server that has not said otherwise. */
const LEAST_PAYLOAD_BYTES = 64 * 1024

export class NatsLine implements AsyncDisposable {
  readonly #options: NatsOptions
  readonly #ending = new AbortController()
  readonly #events = new Set<NatsEvents>()
  readonly #subjects = new Map<string, (data: Uint8Array) => void>()
  #connection: NatsConnection | null = null
  #isUp = false
  #reconnects = 0
  #opening: Promise<void> = Promise.resolve()

  constructor(options: NatsOptions) {
    this.#options = options
  }

  get isUp(): boolean {
    return this.#isUp
  }

  get reconnects(): number {
    return this.#reconnects
  }

  /** What the servers carry in one message. */
  get maxPayloadBytes(): number {
    return this.#connection?.info?.max_payload ?? LEAST_PAYLOAD_BYTES
  }

  watch(events: NatsEvents): void {
    this.#events.add(events)
  }

  /** Resolves once it is connected, or has tried for a while: servers that are away now are connected to when they are back. */
  async open(): Promise<void> {
    this.#opening = this.#keepTrying()
    await settlesWithin(this.#opening, OPEN_MS)
  }

  hear(subject: string, listener: (data: Uint8Array) => void): void {
    this.#subjects.set(subject, listener)
    if (this.#connection !== null) this.#subscribe(this.#connection, subject, listener)
  }

  /** False: it is lost. */
  say(subject: string, data: Uint8Array): boolean {
    if (!this.#isUp || this.#connection === null) return false
    try {
      this.#connection.publish(this.#toSubject(subject), data)
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
    await this.#opening
  }

  /** The client connects again by itself once it was connected; until then this does. */
  async #keepTrying(): Promise<void> {
    const { signal } = this.#ending
    const backoff = createBackoff({ firstMs: 100, maxMs: 5000 })
    let hasFailed = false
    while (!signal.aborted) {
      try {
        const connection = await connect(this.#toOptions())
        if (signal.aborted) return await connection.close()
        this.#connection = connection
        for (const [subject, listener] of this.#subjects) this.#subscribe(connection, subject, listener)
        this.#isUp = true
        void this.#follow(connection)
        if (hasFailed) for (const { onBack } of this.#events) onBack()
        return
      } catch (error) {
        if (!hasFailed) this.#options.log.warn({ reason: reasonOf(error) }, 'NATS cannot be reached; it is tried again')
        hasFailed = true
        await sleep(backoff.nextMs(), signal)
      }
    }
  }

  async #follow(connection: NatsConnection): Promise<void> {
    const { log } = this.#options
    for await (const { type } of connection.status()) {
      if (this.#ending.signal.aborted) return
      if (type === 'disconnect' && this.#isUp) {
        this.#isUp = false
        log.warn({}, 'the connection to NATS is gone; until it is back changes are found by looking')
        for (const { onAway } of this.#events) onAway()
      } else if (type === 'reconnect') {
        this.#isUp = true
        this.#reconnects++
        log.info({}, 'the connection to NATS is back')
        for (const { onBack } of this.#events) onBack()
      }
    }
  }

  #subscribe(connection: NatsConnection, subject: string, listener: (data: Uint8Array) => void): void {
    const callback = (error: Error | null, { data }: { readonly data: Uint8Array }) => {
      if (error === null) listener(data)
      else this.#options.log.warn({ reason: error.message, subject }, 'NATS does not let this process listen')
    }
    connection.subscribe(this.#toSubject(subject), { callback })
  }

  #toSubject(subject: string): string {
    return `atelier.${this.#options.cluster}.${subject}`
  }

  #toOptions(): ConnectionOptions {
    const { servers, isEncrypted, user, password, credentialsFile } = this.#options
    return {
      servers: [...servers],
      name: 'atelier',
      timeout: OPEN_MS,
      maxReconnectAttempts: -1,
      // A user may be refused for a while, as during a change of credentials; the client would give up for good.
      ignoreAuthErrorAbort: true,
      reconnectTimeWait: RETRY_MS,
      reconnectJitter: RETRY_MS,
      pingInterval: PING_MS,
      maxPingOut: 2,
      ...(isEncrypted === true && { tls: {} }),
      ...(user !== undefined && { user }),
      ...(password !== undefined && { pass: password }),
      ...(credentialsFile !== undefined && { authenticator: credsAuthenticator(createFileReader(credentialsFile)) }),
    }
  }
}

/** Reads it anew for each attempt, because credentials are changed; while it is being replaced, what was there before counts. */
function createFileReader(file: string): () => Uint8Array {
  let bytes = readFileSync(file)
  return () => {
    try {
      bytes = readFileSync(file)
    } catch {
      // The next attempt reads it again.
    }
    return bytes
  }
}

/** Without anything that a server could have put into its words about a user. */
function reasonOf(error: unknown): string {
  return error instanceof Error ? error.name : 'unknown'
}
