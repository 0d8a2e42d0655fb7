/**
 * Server-sent events on the wire: frames, the head of the answer, and taking a socket over from the HTTP layer. The body is
 * delimited by the end of the connection: chunking would cost a copy and two more writes per frame and reader.
 */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

export const KEEPALIVE_COMMENT = Buffer.from(': keepalive\n\n')
export const CLOSING_COMMENT = Buffer.from(': closing\n\n')

const STREAM_HEADERS = [
  'Content-Type',
  'text/event-stream',
  'Cache-Control',
  'no-cache',
  'Connection',
  'keep-alive',
  'X-Accel-Buffering',
  'no',
]

/** `json` must be one line, as JSON.stringify writes it. */
export function encodeFrame(event: string, json: string): Buffer {
  return Buffer.from(`event: ${event}\ndata: ${json}\n\n`)
}

/** The answer's head with the stream's own headers in place of equally named ones of `headers`. */
export function encodeStreamHead(headers: readonly string[]): string {
  let head = `HTTP/1.1 200 OK\r\nDate: ${new Date().toUTCString()}\r\n`
  for (let at = 0; at < headers.length; at += 2) {
    if (!STREAM_HEADERS.includes(headers[at])) head += `${headers[at]}: ${headers[at + 1]}\r\n`
  }
  for (let at = 0; at < STREAM_HEADERS.length; at += 2) head += `${STREAM_HEADERS[at]}: ${STREAM_HEADERS[at + 1]}\r\n`
  return `${head}\r\n`
}

/**
 * Cuts the socket loose from its response, so that neither the response nor whatever hangs on it stays in memory for the
 * life of the stream. The response is told that it is over. A response that comes behind others on its connection has to
 * wait until they are written; null when the connection ends before that.
 */
export async function takeSocket(response: ServerResponse): Promise<Socket | null> {
  if (response.socket === null) await untilItHasSocket(response)
  const socket = response.socket
  if (socket === null || socket.destroyed) return null
  // What node does when a peer ends its side, namely end ours, is right for answers and wrong for a stream.
  socket.removeAllListeners('end')
  response.detachSocket(socket)
  response.emit('close')
  // The idle timeout of ordinary requests does not apply: a stream is alive as long as it is kept alive.
  socket.setTimeout(0)
  socket.setNoDelay(true)
  return socket
}

function untilItHasSocket(response: ServerResponse): Promise<void> {
  const connection = response.req.socket
  if (connection.destroyed) return Promise.resolve()
  return new Promise((resolve) => {
    const done = () => {
      response.off('socket', done)
      connection.off('close', done)
      resolve()
    }
    response.once('socket', done)
    connection.once('close', done)
  })
}
