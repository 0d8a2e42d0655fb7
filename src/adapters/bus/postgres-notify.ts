/**
 * The bus between processes on one Postgres: one channel, and one connection per process that listens and sends. Lines gather
 * for a moment and leave in a transaction of their own, because NOTIFY takes a lock of the whole server until its commit: it
 * must never be part of a transaction that does work. The connection is tested at the start and now and then, by receiving
 * what it sent: a pooler may silently ignore LISTEN. Notices that are lost while it is down are not kept: listeners learn
 * that something was lost, and read again. Events of a job's run go over links (live/live-links.ts).
 */
import type { Client } from 'pg'
import { uptimeMs } from '../../../lib/clock.ts'
import { newUuidV4 } from '../../../lib/ids.ts'
import type { Log } from '../../../lib/log.ts'
import { createClient, type PostgresPlace, streamOf } from '../../../lib/postgres/driver.ts'
import { createBackoff, settlesWithin, sleep } from '../../../lib/waiting/sleep.ts'
import type { BusHealth, ProcessBus } from './bus-health.ts'
import type { LiveLinks } from './live/live-links.ts'
import { createWireBus, type Medium, NoticeBatch } from './wire-bus.ts'

interface NotifyOptions extends PostgresPlace {
  /** The id of this process, which tells what it sent from what others did. */
  readonly nodeId: string
  readonly links: LiveLinks
  readonly log: Log
  /** How long lines gather after others were sent. */
  readonly gatherMs?: number
  /** How often a connection proves itself. */
  readonly proveMs?: number
  /** How often listeners are asked to read again while the connection receives nothing. */
  readonly deafMs?: number
}

const CHANNEL = 'atelier'
const SEND = `SELECT pg_notify('${CHANNEL}', payload) FROM unnest($1::text[]) AS payload`
// A notice needs no sync: it is not stored.
const SETTINGS = { synchronous_commit: 'off', statement_timeout: '5000' }
const GATHER_MS = 20
/** Postgres refuses payloads of 8000 bytes and more; the sender's name stands before the lines. */
const MAX_PAYLOAD_BYTES = 7800
const PROVE_MS = 10_000
const PROOF_WAIT_MS = 3000
const DEAF_MS = 1000
const CONNECT_MS = 5000
const CLOSE_MS = 1000
/** Lines that are not notices: something was lost; a proof. */
const LOST = '!'
const PROOF = '? '

/** Resolves once the bus listens, or has tried: a server that is away now is connected to when it is back. */
export async function openPostgresNotifyBus(options: NotifyOptions): Promise<ProcessBus> {
  const connection = new NotifyConnection(options)
  const { links, log } = options
  const bus = createWireBus({ medium: connection, links, log })
  await connection.start()
  return {
    ...bus,
    health: () => ({ ...connection.health(), links: links.stats() }),
    prove: () => connection.prove(),
    async [Symbol.asyncDispose]() {
      bus[Symbol.dispose]()
      await connection.close()
      await links[Symbol.asyncDispose]()
    },
  }
}

class NotifyConnection implements Medium {
  readonly #options: NotifyOptions
  readonly #self: string
  readonly #batch = new NoticeBatch(MAX_PAYLOAD_BYTES)
  readonly #ending = new AbortController()
  readonly #proofs = new Map<string, () => void>()
  #receiver: Parameters<Medium['connect']>[0] | null = null
  #client: Client | null = null
  #hears = false
  #lagMs: number | null = null
  #reconnects = 0
  #sentAtMs = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | null = null
  #sending: Promise<void> = Promise.resolve()
  #isSending = false
  #looping: Promise<void> = Promise.resolve()

  constructor(options: NotifyOptions) {
    this.#options = options
    this.#self = options.nodeId
  }

  health(): Omit<BusHealth, 'links'> {
    return { kind: 'notify', isHearing: this.#hears, lagMs: this.#lagMs, reconnects: this.#reconnects }
  }

  connect(receiver: Parameters<Medium['connect']>[0]): void {
    this.#receiver = receiver
  }

  send(...[encoded, notice]: Parameters<Medium['send']>): void {
    this.#batch.add(encoded, notice)
    this.#schedule()
  }

  async start(): Promise<void> {
    const tried = Promise.withResolvers<void>()
    this.#looping = this.#keepConnected(tried.resolve)
    await tried.promise
  }

  async prove(): Promise<boolean> {
    const nonce = newUuidV4()
    const heard = new Promise<void>((resolve) => this.#proofs.set(nonce, resolve))
    try {
      await this.#flush()
      const askedAtMs = uptimeMs()
      await this.#ask([`${this.#self}\n${PROOF}${nonce}`])
      const isHeard = await settlesWithin(heard, PROOF_WAIT_MS)
      this.#lagMs = isHeard ? uptimeMs() - askedAtMs : null
      return isHeard
    } catch {
      return false
    } finally {
      this.#proofs.delete(nonce)
    }
  }

  async close(): Promise<void> {
    if (this.#client !== null && !this.#batch.isEmpty) await settlesWithin(this.#flush(), CLOSE_MS)
    this.#ending.abort()
    if (this.#timer !== null) clearTimeout(this.#timer)
    await this.#looping
  }

  /** What follows a pause leaves at once, with all of its turn; what follows soon waits for the next time. */
  #schedule(): void {
    if (this.#timer !== null || this.#isSending || this.#ending.signal.aborted) return
    const dueMs = this.#sentAtMs + (this.#options.gatherMs ?? GATHER_MS)
    this.#timer = setTimeout(() => void this.#flush(), Math.max(0, dueMs - uptimeMs()))
  }

  /** One after the other, so that lines arrive in the order in which they were said. Never rejects. */
  #flush(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#sending = this.#sending.then(() => this.#sendBatch())
    return this.#sending
  }

  async #sendBatch(): Promise<void> {
    if (this.#batch.isEmpty) return
    // Nothing is kept for later: when the connection is back, the others learn that something was lost.
    if (this.#client === null) return this.#batch.lose()
    this.#isSending = true
    this.#sentAtMs = uptimeMs()
    const { hasLost } = this.#batch
    const payloads = this.#batch.take().map((lines) => `${this.#self}\n${lines}`)
    if (hasLost) payloads.push(`${this.#self}\n${LOST}`)
    try {
      await this.#ask(payloads)
    } catch (error) {
      this.#batch.lose()
      this.#options.log.debug({ err: error }, 'notices could not be sent')
    } finally {
      this.#isSending = false
      if (!this.#batch.isEmpty && this.#client !== null) this.#schedule()
    }
  }

  async #ask(payloads: readonly string[]): Promise<void> {
    const client = this.#client
    if (client === null) throw new Error('There is no connection.')
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    // With a callback: left to itself, the library makes one that keeps the answer alive until a full collection (decision 0073).
    client.query({ name: 'notify', text: SEND, values: [payloads] }, (error) => (error ? reject(error) : resolve()))
    await promise
  }

  #hear(payload: string): void {
    const [sender = '', ...lines] = payload.split('\n')
    for (const line of lines) {
      if (line.startsWith(PROOF)) this.#proofs.get(line.slice(PROOF.length))?.()
      else if (sender === this.#self) continue
      else if (line === LOST) this.#receiver?.onGap()
      else this.#receiver?.onNotice({ line, bytes: null }, sender)
    }
  }

  async #keepConnected(onTried: () => void): Promise<void> {
    const { signal } = this.#ending
    const { log } = this.#options
    const backoff = createBackoff({ firstMs: 100, maxMs: 5000 })
    let wasAway = false
    while (!signal.aborted) {
      const client = createClient(this.#options, { name: 'atelier', settings: SETTINGS })
      const gone = new AbortController()
      client.on('error', () => gone.abort())
      client.on('end', () => gone.abort())
      client.on('notification', ({ payload = '' }) => this.#hear(payload))
      try {
        await client.connect()
        if (!(await settlesWithin(client.query(`LISTEN ${CHANNEL}`), CONNECT_MS)))
          throw new Error('LISTEN is not answered.')
        this.#client = client
        backoff.reset()
        await this.#stayConnected(AbortSignal.any([signal, gone.signal]), { wasAway, onTried })
      } catch (error) {
        log.debug({ err: error }, 'the connection for notices failed')
      } finally {
        this.#client = null
        this.#hears = false
        await settlesWithin(client.end(), CLOSE_MS)
        // One that leads nowhere never ends by itself, and whatever was sent on it would wait for ever.
        streamOf(client).destroy()
      }
      onTried()
      wasAway = true
      this.#reconnects++
      if (!signal.aborted)
        log.warn({}, 'the connection for notices is gone; until it is back changes are found by looking')
      await sleep(backoff.nextMs(), signal)
    }
  }

  /** A connection that leads nowhere does not even say that it took what was sent. */
  async #proveInTime(): Promise<boolean> {
    let isProven = false
    const proving = this.prove().then((is) => {
      isProven = is
    })
    return (await settlesWithin(proving, 2 * PROOF_WAIT_MS)) && isProven
  }

  /** Returns when the connection is gone, or no longer receives notices. */
  async #stayConnected(
    signal: AbortSignal,
    { wasAway, onTried }: { readonly wasAway: boolean; readonly onTried: () => void },
  ): Promise<void> {
    const { log, proveMs = PROVE_MS, deafMs = DEAF_MS } = this.#options
    this.#hears = await this.#proveInTime()
    if (!this.#hears && !signal.aborted)
      log.warn({}, 'LISTEN is not heard, perhaps because of a pooler; changes are found by looking')
    if (wasAway) this.#receiver?.onGap()
    onTried()
    // That something was lost is sent with the next lines, or alone if there are none.
    if (!this.#batch.isEmpty) this.#schedule()
    let sinceProofMs = 0
    while (true) {
      const pauseMs = this.#hears ? proveMs : deafMs
      await sleep(pauseMs, signal)
      if (signal.aborted) return
      sinceProofMs += pauseMs
      if (!this.#hears) this.#receiver?.onGap()
      if (sinceProofMs < proveMs) continue
      sinceProofMs = 0
      const hears = await this.#proveInTime()
      if (this.#hears && !hears) return
      this.#hears = hears
    }
  }
}
