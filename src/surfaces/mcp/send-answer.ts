/**
 * Writes an answer of the protocol's library to its connection. The head goes out before there is anything to tell, so that a client
 * knows at once that its call was taken; and a client that left is noticed at once, so that nothing waits for it any longer.
 */
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { FastifyReply } from 'fastify'

const COMMENT = ': still there?\n\n'
// A client that is gone answers the first write with a reset, and only a second write fails because of it.
const PROBE_AGAIN_MS = 20

export async function sendAnswer(answer: Response, reply: FastifyReply): Promise<void> {
  const { raw } = reply.hijack()
  for (const [name, value] of [...Object.entries(reply.getHeaders()), ...answer.headers])
    if (value !== undefined) raw.setHeader(name, value)
  raw.statusCode = answer.status
  raw.flushHeaders()
  if (answer.body === null) {
    raw.end()
    return
  }
  const { socket } = raw
  const isStream = answer.headers.get('Content-Type')?.startsWith('text/event-stream') === true
  // Frames are written whole, so a comment stands between two of them.
  const probe = () => void (isStream && !raw.writableEnded && raw.write(COMMENT))
  const timers = new Set<NodeJS.Timeout>()
  const onPeerEnd = () => {
    probe()
    timers.add(setTimeout(probe, PROBE_AGAIN_MS))
  }
  socket?.once('end', onPeerEnd)
  try {
    await pipeline(Readable.fromWeb(answer.body), raw)
  } catch {
    // One side closed the connection, so the error cannot be reported to it.
    raw.destroy()
  } finally {
    socket?.off('end', onPeerEnd)
    for (const timer of timers) clearTimeout(timer)
  }
}
