/** A client of the socket that records every frame in order, and lets a test wait for a frame. */
import { once } from 'node:events'
import type { WebSocket } from 'ws'

export interface TextFrame {
  readonly type: string
  readonly data: Record<string, unknown>
}

export interface BinaryFrame {
  readonly binary: Buffer
}

export type Frame = TextFrame | BinaryFrame

export interface TestSocket {
  readonly ws: WebSocket
  readonly frames: readonly Frame[]
  /** Resolves with the first frame, from the first one on, that is what the test looks for. */
  until(isIt: (frame: Frame) => boolean): Promise<Frame>
  untilCount(count: number): Promise<void>
  /** The code of the close. */
  readonly closed: Promise<number>
  close(): Promise<void>
}

export function isText(frame: Frame, type: string): frame is TextFrame {
  return 'type' in frame && frame.type === type
}

/** Rejects with the status when the handshake was refused. */
export async function openSocket(ws: WebSocket): Promise<TestSocket> {
  const frames: Frame[] = []
  const waiting = new Set<() => void>()
  ws.on('message', (data: Buffer, isBinary) => {
    frames.push(isBinary ? { binary: data } : (JSON.parse(String(data)) as TextFrame))
    for (const look of waiting) look()
  })
  const closed = new Promise<number>((resolve) => ws.on('close', resolve))
  closed.then(() => {
    for (const look of waiting) look()
  })
  await opened(ws)
  ws.on('error', () => {})

  function wait<Found>(find: () => Found | undefined): Promise<Found> {
    return new Promise((resolve, reject) => {
      const look = () => {
        const found = find()
        if (found === undefined && ws.readyState !== ws.CLOSED) return
        waiting.delete(look)
        if (found === undefined) reject(new Error(`the socket closed after ${frames.length} frames`))
        else resolve(found)
      }
      waiting.add(look)
      look()
    })
  }

  return {
    ws,
    frames,
    closed,
    until(isIt) {
      let seen = 0
      return wait(() => {
        while (seen < frames.length) if (isIt(frames[seen++])) return frames[seen - 1]
        return undefined
      })
    },
    async untilCount(count) {
      await wait(() => (frames.length >= count ? true : undefined))
    },
    async close() {
      if (ws.readyState === ws.CLOSED) return
      ws.close()
      await once(ws, 'close')
    },
  }
}

function opened(ws: WebSocket): Promise<void> {
  return new Promise((resolve, reject) => {
    ws.once('open', resolve)
    ws.once('error', reject)
    ws.once('unexpected-response', (_request, response) => {
      const parts: Buffer[] = []
      response.on('data', (part: Buffer) => parts.push(part))
      response.on('end', () => reject(new RefusedHandshake(response.statusCode ?? 0, Buffer.concat(parts).toString())))
    })
  })
}

export class RefusedHandshake extends Error {
  readonly status: number
  readonly body: string
  constructor(status: number, body: string) {
    super(`refused with ${status}`)
    this.status = status
    this.body = body
  }
}
