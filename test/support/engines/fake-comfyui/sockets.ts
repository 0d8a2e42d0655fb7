/**
 * The sockets of the fake server, kept by client id as ComfyUI keeps them: a new connection under an id takes the place of the
 * old one, and when a connection is unwound, whatever is registered under its id is forgotten.
 */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import type { FakeFaults } from './faults.ts'

export interface SocketCounts {
  open: number
  /** The most at a time. */
  peak: number
  total: number
  clientIds: string[]
}

export class FakeSockets {
  readonly counts: SocketCounts = { open: 0, peak: 0, total: 0, clientIds: [] }
  readonly #server = new WebSocketServer({ noServer: true })
  readonly #registered = new Map<string, WebSocket>()
  readonly #wantsMetadata = new WeakSet<WebSocket>()
  readonly #faults: FakeFaults
  readonly #greet: (clientId: string) => readonly object[]
  readonly #features: () => object
  /** Sent and not arrived, in their order; null: everything arrives at once. */
  #underWay: (() => void)[] | null = null

  constructor(faults: FakeFaults, greet: (clientId: string) => readonly object[], features: () => object) {
    this.#faults = faults
    this.#greet = greet
    this.#features = features
  }

  accept(request: IncomingMessage, connection: Duplex, head: Buffer): void {
    connection.on('error', () => {})
    if (this.#faults.refuseSocket) {
      connection.end('HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\n\r\n')
      return
    }
    this.#server.handleUpgrade(request, connection, head, (socket) => {
      const clientId = new URL(request.url ?? '', 'http://fake').searchParams.get('clientId') ?? ''
      this.#open(socket, clientId)
    })
  }

  #open(socket: WebSocket, clientId: string): void {
    const { counts } = this
    counts.open++
    counts.total++
    counts.peak = Math.max(counts.peak, counts.open)
    counts.clientIds.push(clientId)
    this.#registered.set(clientId, socket)
    for (const greeting of this.#greet(clientId)) socket.send(JSON.stringify(greeting))
    socket.once('message', (data) => this.#onFirstMessage(socket, String(data)))
    socket.on('error', () => {})
    socket.on('close', () => {
      counts.open--
      const unwind = () => this.#registered.delete(clientId)
      if (this.#faults.unwindSocketMs > 0) setTimeout(unwind, this.#faults.unwindSocketMs)
      else unwind()
    })
  }

  #onFirstMessage(socket: WebSocket, text: string): void {
    const message = JSON.parse(text) as { type?: string; data?: { supports_preview_metadata?: boolean } }
    if (message.type !== 'feature_flags') return
    if (message.data?.supports_preview_metadata === true) this.#wantsMetadata.add(socket)
    socket.send(JSON.stringify({ type: 'feature_flags', data: this.#features() }))
  }

  wantsMetadata(clientId: string | null): boolean {
    const socket = clientId === null ? undefined : this.#registered.get(clientId)
    return socket !== undefined && this.#wantsMetadata.has(socket)
  }

  /** To one client, or with null to everybody. */
  send(clientId: string | null, frame: string | Buffer): void {
    const to = clientId === null ? [...this.#registered.values()] : [this.#registered.get(clientId)]
    for (const socket of to) if (socket !== undefined) this.#sendOne(socket, frame)
  }

  #sendOne(socket: WebSocket, frame: string | Buffer): void {
    const faults = this.#faults
    if (faults.silentSocket) return
    if (this.#underWay !== null) {
      this.#underWay.push(() => socket.send(frame))
      return
    }
    socket.send(frame)
    if (faults.cutSocketAfterFrames === null) return
    faults.cutSocketAfterFrames -= 1
    if (faults.cutSocketAfterFrames > 0) return
    faults.cutSocketAfterFrames = null
    socket.terminate()
  }

  /** From now on nothing arrives, as over a slow network, until `deliver`. */
  delay(): void {
    this.#underWay ??= []
  }

  deliver(): void {
    const frames = this.#underWay ?? []
    this.#underWay = null
    for (const send of frames) send()
  }

  isRegistered(clientId: string): boolean {
    return this.#registered.has(clientId)
  }

  cutAll(): void {
    for (const socket of this.#server.clients) socket.terminate()
  }

  close(): void {
    this.cutAll()
    this.#registered.clear()
    this.#server.close()
  }
}
