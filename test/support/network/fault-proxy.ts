/**
 * A TCP proxy that stands for the network between two processes. It does nothing to the bytes until it is told to: connections can be
 * refused, cut, slowed down, silenced in both directions, or left half open. Where it leads to can change, as an address does that
 * moves to another machine.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

export type LinkState =
  /** Bytes pass, each so much later, and no more of them than this. */
  | { readonly kind: 'open'; readonly delayMs?: number; readonly bytesPerMs?: number }
  /** Connections are reset, and new ones are too. */
  | { readonly kind: 'cut' }
  /** Nothing arrives any more and nobody is told: as when a cable is pulled. Once it is open again, bytes go on where they stopped. */
  | { readonly kind: 'silent' }
  /** The far side sees the connections end; the near side is not told before the link is open again. */
  | { readonly kind: 'half-open' }

export interface FaultProxy extends AsyncDisposable {
  readonly port: number
  /** Where new connections lead; null: nobody listens there. */
  aim(port: number | null): void
  set(state: LinkState): void
  /** Resets every connection that is open now; new ones are served. */
  drop(): void
  /** Nothing arrives any more on the connections that are open now, and nobody is told for minutes; new ones are served. */
  forget(): void
  connectionCount(): number
}

const KEPT_ALIVE_MS = 120_000
const OPEN: LinkState = { kind: 'open' }

export async function openFaultProxy(options: { readonly target?: number | null } = {}): Promise<FaultProxy> {
  const proxy = new TcpProxy(options.target ?? null)
  await proxy.listen()
  return proxy
}

class TcpProxy implements FaultProxy {
  port = 0
  #target: number | null
  #state: LinkState = OPEN
  readonly #pairs = new Set<Pair>()
  readonly #server: Server

  constructor(target: number | null) {
    this.#target = target
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (near) => this.#accept(near))
  }

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    this.port = (this.#server.address() as AddressInfo).port
  }

  aim(port: number | null): void {
    this.#target = port
  }

  set(state: LinkState): void {
    this.#state = state
    for (const pair of this.#pairs) pair.set(state)
  }

  drop(): void {
    for (const pair of this.#pairs) pair.end()
  }

  forget(): void {
    for (const pair of this.#pairs) pair.forget()
  }

  connectionCount(): number {
    return this.#pairs.size
  }

  #accept(near: Socket): void {
    if (this.#target === null || this.#state.kind === 'cut') {
      near.on('error', () => {})
      near.resetAndDestroy()
      return
    }
    const pair = new Pair(near, this.#target, () => this.#pairs.delete(pair))
    this.#pairs.add(pair)
    pair.set(this.#state)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close()
    this.drop()
    if (this.#server.listening) await once(this.#server, 'close')
  }
}

/** The system refuses to reset a socket whose end is on its way, and the process could then never end. */
function reset(socket: Socket): void {
  if (socket.writableEnded) socket.destroy()
  else socket.resetAndDestroy()
}

/** One connection and its continuation. */
class Pair {
  readonly #near: Socket
  readonly #onEnd: () => void
  #far: Socket | null = null
  readonly #port: number
  #state: LinkState = OPEN
  #hasEnded = false
  /** The far side has gone, and the near side does not know. */
  #isOrphan = false
  #isForgotten = false

  constructor(near: Socket, port: number, onEnd: () => void) {
    this.#near = near
    this.#port = port
    this.#onEnd = onEnd
    near.on('error', () => this.end())
    near.on('close', () => this.end())
    near.pause()
  }

  forget(): void {
    this.#isForgotten = true
    this.#pause()
    // The far side asks now and then whether anybody is there, and gets no answer.
    setTimeout(() => this.end(), KEPT_ALIVE_MS).unref()
  }

  set(state: LinkState): void {
    this.#state = state
    if (this.#hasEnded || this.#isForgotten) return
    if (state.kind === 'cut' || (state.kind === 'open' && this.#isOrphan)) this.end()
    else if (state.kind === 'half-open') this.#orphan()
    else if (state.kind === 'silent') this.#pause()
    else this.#resume()
  }

  end(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    reset(this.#near)
    if (this.#far !== null) reset(this.#far)
    this.#onEnd()
  }

  #orphan(): void {
    this.#isOrphan = true
    this.#near.pause()
    if (this.#far !== null) reset(this.#far)
  }

  #pause(): void {
    this.#near.pause()
    this.#far?.pause()
  }

  #resume(): void {
    this.#far ??= this.#dial()
    this.#near.resume()
    this.#far.resume()
  }

  #dial(): Socket {
    const far = connect({ port: this.#port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
    const gone = () => {
      if (!this.#isOrphan) this.end()
    }
    far.on('error', gone)
    far.on('close', gone)
    this.#carry(this.#near, far)
    this.#carry(far, this.#near)
    return far
  }

  #carry(from: Socket, to: Socket): void {
    const later = this.#createQueue()
    const goOn = () => {
      if (this.#state.kind === 'open' && !this.#isForgotten) from.resume()
    }
    from.on('data', (bytes) => {
      const narrowMs = this.#narrowMs(bytes.length)
      if (narrowMs > 0) from.pause()
      later(() => {
        if (to.destroyed) return
        if (!to.write(bytes)) {
          from.pause()
          to.once('drain', goOn)
        } else if (narrowMs > 0) goOn()
      }, narrowMs)
    })
    from.on('end', () => later(() => to.end()))
  }

  /** How long so many bytes take on a narrow line. */
  #narrowMs(bytes: number): number {
    const { bytesPerMs = null } = this.#state.kind === 'open' ? this.#state : {}
    return bytesPerMs === null ? 0 : bytes / bytesPerMs
  }

  /**
   * Does one thing after the other, each after the delay that the link has then; nothing overtakes what was slowed down. One timer for
   * all: several of different durations change their order when the process is late, and a connection never does that to its bytes.
   */
  #createQueue(): (act: () => void, narrowMs?: number) => void {
    const queue: { readonly dueMs: number; readonly act: () => void }[] = []
    let lastDueMs = 0
    const wait = () => setTimeout(run, Math.max(0, (queue[0]?.dueMs ?? 0) - performance.now()))
    function run(): void {
      const now = performance.now()
      while (queue[0] !== undefined && queue[0].dueMs <= now) queue.shift()?.act()
      if (queue.length > 0) wait()
    }
    return (act, narrowMs = 0) => {
      const delayMs = (this.#state.kind === 'open' ? (this.#state.delayMs ?? 0) : 0) + narrowMs
      if (delayMs === 0 && queue.length === 0) return act()
      lastDueMs = Math.max(lastDueMs, performance.now() + delayMs)
      queue.push({ dueMs: lastDueMs, act })
      if (queue.length === 1) wait()
    }
  }
}
