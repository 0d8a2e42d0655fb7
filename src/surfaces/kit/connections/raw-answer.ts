/** Answers that are written without the framework: on a response object, or on nothing but a socket. */
import { randomUUID } from 'node:crypto'
import { type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Gate } from '../guards/gate.ts'
import type { AnswerError, ErrorAnswer } from '../surface.ts'

/** `headers` are the common ones, as name, value, name, value. */
export function writeAnswer(response: ServerResponse, headers: readonly string[], answer: ErrorAnswer): void {
  response.writeHead(answer.status, withOwn(headers, answer))
  response.end(answer.body)
}

/** The whole answer as text, for a connection that ends with it. */
export function encodeAnswer(headers: readonly string[], answer: ErrorAnswer): string {
  const all = [...withOwn(headers, answer), 'Connection', 'close']
  let text = `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status] ?? ''}\r\n`
  for (let at = 0; at < all.length; at += 2) text += `${all[at]}: ${all[at + 1]}\r\n`
  return `${text}\r\n${answer.body}`
}

function withOwn(headers: readonly string[], { headers: own, body }: ErrorAnswer): string[] {
  return [...headers, ...Object.entries(own).flat(), 'Content-Length', String(Buffer.byteLength(body))]
}

interface BrokenRequestOptions {
  readonly gate: Pick<Gate, 'answerHeaders'>
  readonly answerError: AnswerError
}

/**
 * Bytes that are not HTTP, headers without end, requests that never complete: answered once in the envelope where nothing has
 * been written yet, and the connection closed in every case. Nothing that arrives on a socket may end the process.
 */
export function answerBrokenRequests(server: Server, { gate, answerError }: BrokenRequestOptions): void {
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    const code = error.code ?? ''
    const isAboutHttp = code.startsWith('HPE_') || code.startsWith('ERR_HTTP_')
    // Anything already written may be half an answer, and a second one would corrupt it.
    if (!isAboutHttp || !socket.writable || socket.bytesWritten > 0) {
      socket.destroy()
      return
    }
    const requestId = randomUUID()
    socket.write(encodeAnswer(gate.answerHeaders(undefined, requestId), answerError(error, requestId)))
    socket.destroySoon()
  })
}
