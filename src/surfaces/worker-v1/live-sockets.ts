/**
 * The WebSockets of joined workers. They carry only what may be lost: live events of runs up, and down that a job has changed or
 * that there may be work. A socket whose key is no longer accepted is closed within a second. What one socket may send, and what
 * waits for one that reads slowly, is bounded.
 */
import type { IncomingMessage } from 'node:http'
import { type WebSocket, WebSocketServer } from 'ws'
import type { Log } from '../../../lib/log.ts'
import { ServiceError } from '../../domain/errors.ts'
import { MAX_FRAME_BYTES } from '../../domain/workers/wire/live-frame.ts'
import type { WorkerGateway } from '../../domain/workers/worker-gateway.ts'
import type { WorkerIdentity } from '../../domain/workers/worker-keys.ts'
import type { Gate } from '../kit/guards/gate.ts'
import type { AnswerError, Upgrade, UpgradeRoute } from '../kit/surface.ts'
import { mustSpeak, WORKER_PATH } from './worker-operation.ts'

interface LiveSocketsDeps {
  readonly gate: Pick<Gate, 'mountPrefix'>
  readonly gateway: Pick<WorkerGateway, 'live' | 'keys'>
  readonly identify: (request: IncomingMessage) => WorkerIdentity
  readonly answerError: AnswerError
  readonly protocolVersions: readonly number[]
  readonly load: WorkerLoad
  readonly log: Log
}

const CHECK_MS = 1000
const PING_EVERY = 15
const MAX_WAITING_BYTES = 1024 * 1024
// The most that a run tells by itself, previews included, times many slots.
const MAX_FRAMES_PER_CHECK = 5000
// Of all sockets of a key together. What comes beyond it in a second is lost, as previews may be.
const MAX_BYTES_PER_CHECK = 64 * 1024 * 1024
// In messages that have not come whole yet, of all sockets of a key together: enough for a large picture of each of a few.
const MAX_UNFINISHED_BYTES = 128 * 1024 * 1024
// One for each process of a key.
const MAX_SOCKETS = 128
const GOING_AWAY = 1001
const POLICY = 1008
/** Of our own range: the key is no longer accepted. */
const UNAUTHORIZED = 4401

interface Open {
  readonly worker: WorkerIdentity
  readonly wire: Upgrade['socket']
  frames: number
  /** Of whole messages, since it was opened. */
  taken: number
  isAlive: boolean
}

interface Joining extends Pick<Open, 'worker' | 'wire'> {
  readonly end: () => void
}

export class LiveSockets {
  readonly upgrades: UpgradeRoute
  readonly #deps: LiveSocketsDeps
  readonly #handshakes = new WebSocketServer({ noServer: true, maxPayload: MAX_FRAME_BYTES, perMessageDeflate: false })
  readonly #sockets = new Map<WebSocket, Open>()
  readonly #bytesOf = new Map<string, number>()
  #checks = 0
  #timer: NodeJS.Timeout | null = null
  #isClosed = false

  constructor(deps: LiveSocketsDeps) {
    this.#deps = deps
    const path = `${deps.gate.mountPrefix}${WORKER_PATH}/live`
    this.upgrades = {
      right: 'worker',
      takes: (asked) => asked === path,
      open: (upgrade) => this.#open(upgrade),
      answerError: deps.answerError,
    }
  }

  count(): number {
    return this.#sockets.size
  }

  close(): void {
    this.#isClosed = true
    for (const socket of this.#sockets.keys()) socket.close(GOING_AWAY)
  }

  #checkAll(): void {
    this.#checks++
    this.#bytesOf.clear()
    this.#endUnfinished()
    for (const [socket, open] of this.#sockets) {
      open.frames = 0
      if (!this.#deps.gateway.keys.isGood(open.worker)) socket.close(UNAUTHORIZED, 'the key is no longer accepted')
      else if (this.#checks % PING_EVERY === 0) {
        if (!open.isAlive) socket.terminate()
        open.isAlive = false
        socket.ping()
      }
    }
  }

  /** Many large messages that never end must not fill the memory. */
  #endUnfinished(): void {
    const unfinishedOf = new Map<string, number>()
    for (const [socket, { worker, wire, taken }] of this.#sockets) {
      const sum = (unfinishedOf.get(worker.keyId) ?? 0) + Math.max(0, wire.bytesRead - taken)
      if (sum > MAX_UNFINISHED_BYTES) socket.terminate()
      else unfinishedOf.set(worker.keyId, sum)
    }
  }

  /** False: the key has told enough in this second. */
  #count({ keyId }: WorkerIdentity, bytes: number): boolean {
    const sum = (this.#bytesOf.get(keyId) ?? 0) + bytes
    this.#bytesOf.set(keyId, sum)
    return sum <= MAX_BYTES_PER_CHECK
  }

  #join(socket: WebSocket, { worker, wire, end }: Joining): void {
    const open: Open = { worker, wire, frames: 0, taken: wire.bytesRead, isAlive: true }
    const session = this.#deps.gateway.live.open(worker, (message) => {
      if (socket.readyState === socket.OPEN && socket.bufferedAmount < MAX_WAITING_BYTES) {
        socket.send(JSON.stringify(message))
      }
    })
    this.#sockets.set(socket, open)
    this.#timer ??= setInterval(() => this.#checkAll(), CHECK_MS)
    socket.on('pong', () => {
      open.isAlive = true
    })
    socket.on('message', (data: Buffer, isBinary: boolean) => {
      open.frames++
      if (open.frames > MAX_FRAMES_PER_CHECK) return socket.close(POLICY, 'too many messages')
      open.taken += data.length + headBytes(data.length)
      if (!this.#count(worker, data.length) && isBinary) return
      if (isBinary) session.take(data)
      else if (!session.order(data.toString('utf8'))) socket.close(POLICY, 'a message cannot be understood')
    })
    socket.on('error', (error) => this.#deps.log.debug({ err: error }, 'a live connection of a worker broke'))
    socket.on('close', () => {
      session.end()
      end()
      this.#sockets.delete(socket)
      if (this.#sockets.size > 0 || this.#timer === null) return
      clearInterval(this.#timer)
      this.#timer = null
    })
  }

  async #open({ request, socket, head }: Upgrade): Promise<void> {
    const { identify, protocolVersions, load } = this.#deps
    if (this.#isClosed)
      throw new ServiceError('shutting_down', 'the service is shutting down; connect again in a moment')
    const worker = identify(request)
    mustSpeak(request, protocolVersions)
    const others = [...this.#sockets.values()].filter((each) => each.worker.keyId === worker.keyId).length
    if (others >= MAX_SOCKETS) throw new ServiceError('rate_limited', `a key may have ${MAX_SOCKETS} live connections`)
    const end = load.begin(worker.keyId)
    socket.setTimeout(0)
    let isJoined = false
    this.#handshakes.handleUpgrade(request, socket, head, (ws) => {
      isJoined = true
      this.#join(ws, { worker, wire: socket, end })
    })
    if (!isJoined) end()
  }
}

/** Of a message that a client sends: two bytes, the mask, and a longer length where that is needed. */
function headBytes(length: number): number {
  if (length < 126) return 6
  return length < 65_536 ? 8 : 14
}

/**
 * How much the processes of one key may ask for at once. A worker with a slot for each of many engines stays far below it; whoever
 * stole a key cannot keep a node busy with it.
 */
interface WorkerLoad {
  /** Throws overloaded. Returns the end of the request. */
  begin(keyId: string): () => void
}

// A parked claim per pool, renewals, and a few uploads and commits for each of hundreds of slots.
const MAX_AT_ONCE = 512
const PER_SECOND = 200
const BURST = 2000

interface KeyLoad {
  underWay: number
  tokens: number
  atMs: number
}

export function createWorkerLoad(nowMs: () => number): WorkerLoad {
  const loads = new Map<string, KeyLoad>()

  function refused(message: string): ServiceError {
    // Not `rate_limited`: a worker waits for this to pass, and would not for a limit of an account.
    return new ServiceError('overloaded', message, { retryAfterSeconds: 1 })
  }

  return {
    begin(keyId) {
      const now = nowMs()
      const load = loads.get(keyId) ?? { underWay: 0, tokens: BURST, atMs: now }
      loads.set(keyId, load)
      load.tokens = Math.min(BURST, load.tokens + ((now - load.atMs) / 1000) * PER_SECOND)
      load.atMs = now
      if (load.underWay >= MAX_AT_ONCE) throw refused('too many requests of this key are under way')
      if (load.tokens < 1) throw refused('this key asks too often')
      load.tokens--
      load.underWay++
      let isOver = false
      return () => {
        if (isOver) return
        isOver = true
        load.underWay--
      }
    },
  }
}
