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
import type { WorkerLoad } from './worker-load.ts'
import { WORKER_PATH } from './worker-operation.ts'
import { mustSpeak } from './worker-versions.ts'

interface LiveSocketsDeps {
  readonly gate: Pick<Gate, 'mountPrefix'>
  readonly gateway: Pick<WorkerGateway, 'live' | 'keys'>
  readonly identify: (request: IncomingMessage) => WorkerIdentity
  readonly answerError: AnswerError
  readonly protocolVersions: readonly number[]
  readonly load: WorkerLoad
  readonly log: Log
}

interface LiveSockets {
  readonly upgrades: UpgradeRoute
  count(): number
  close(): void
}

const CHECK_MS = 1000
const PING_EVERY = 15
const MAX_WAITING_BYTES = 1024 * 1024
// The most that a run tells by itself, previews included, times many slots.
const MAX_FRAMES_PER_CHECK = 5000
const GOING_AWAY = 1001
const POLICY = 1008
/** Of our own range: the key is no longer accepted. */
const UNAUTHORIZED = 4401

interface Open {
  readonly worker: WorkerIdentity
  frames: number
  isAlive: boolean
}

export function createLiveSockets(deps: LiveSocketsDeps): LiveSockets {
  const { gateway, log } = deps
  const handshakes = new WebSocketServer({ noServer: true, maxPayload: MAX_FRAME_BYTES, perMessageDeflate: false })
  const sockets = new Map<WebSocket, Open>()
  const path = `${deps.gate.mountPrefix}${WORKER_PATH}/live`
  let checks = 0
  let timer: NodeJS.Timeout | null = null
  let isClosed = false

  function checkAll(): void {
    checks++
    for (const [socket, open] of sockets) {
      open.frames = 0
      if (!gateway.keys.isGood(open.worker)) socket.close(UNAUTHORIZED, 'the key is no longer accepted')
      else if (checks % PING_EVERY === 0) {
        if (!open.isAlive) socket.terminate()
        open.isAlive = false
        socket.ping()
      }
    }
  }

  function join(socket: WebSocket, worker: WorkerIdentity, end: () => void): void {
    const open: Open = { worker, frames: 0, isAlive: true }
    const session = gateway.live.open(worker, (message) => {
      if (socket.readyState === socket.OPEN && socket.bufferedAmount < MAX_WAITING_BYTES) {
        socket.send(JSON.stringify(message))
      }
    })
    sockets.set(socket, open)
    timer ??= setInterval(checkAll, CHECK_MS)
    socket.on('pong', () => {
      open.isAlive = true
    })
    socket.on('message', (data: Buffer, isBinary: boolean) => {
      open.frames++
      if (open.frames > MAX_FRAMES_PER_CHECK) return socket.close(POLICY, 'too many messages')
      if (isBinary) session.take(data)
      else if (!session.order(data.toString('utf8'))) socket.close(POLICY, 'a message cannot be understood')
    })
    socket.on('error', (error) => log.debug({ err: error }, 'a live connection of a worker broke'))
    socket.on('close', () => {
      session.end()
      end()
      sockets.delete(socket)
      if (sockets.size > 0 || timer === null) return
      clearInterval(timer)
      timer = null
    })
  }

  async function open({ request, socket, head }: Upgrade): Promise<void> {
    if (isClosed) throw new ServiceError('shutting_down', 'the service is shutting down; connect again in a moment')
    const worker = deps.identify(request)
    mustSpeak(request, deps.protocolVersions)
    const end = deps.load.begin(worker.keyId)
    socket.setTimeout(0)
    let isJoined = false
    handshakes.handleUpgrade(request, socket, head, (ws) => {
      isJoined = true
      join(ws, worker, end)
    })
    if (!isJoined) end()
  }

  return {
    upgrades: { takes: (asked) => asked === path, open, answerError: deps.answerError },
    count: () => sockets.size,
    close() {
      isClosed = true
      for (const socket of sockets.keys()) socket.close(GOING_AWAY)
    },
  }
}
