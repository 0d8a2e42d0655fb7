/**
 * Bytes that are not HTTP, headers without end, requests that never complete: answered once in the envelope where nothing has
 * been written yet, and the connection closed in every case. Nothing that arrives on a socket may end the process.
 */
import { randomUUID } from 'node:crypto'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Gate } from '../guards/gate.ts'
import type { AnswerError } from '../surface.ts'
import { encodeAnswer } from './raw-answer.ts'

export interface BrokenRequestOptions {
  readonly gate: Pick<Gate, 'answerHeaders'>
  readonly answerError: AnswerError
}

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
