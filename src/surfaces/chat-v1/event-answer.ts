/** An answer that is written while it comes. Before its first event a refusal is an answer with a status; behind it, an event. */
import type { FastifyReply } from 'fastify'
import type { Served } from '../../domain/models/calls/call-plan.ts'
import type { EventRelay } from '../../domain/models/calls/live-calls.ts'

// Far more than the seconds that a slow line is behind.
const MAX_UNSENT_BYTES = 4 * 1024 * 1024

export class EventAnswer implements EventRelay {
  readonly #reply: FastifyReply
  readonly #tellServer: (served: Served | null) => void
  hasBegun = false
  #largestBytes = 0

  /** `tellServer` sets the headers that say who answers, before anything is written. */
  constructor(reply: FastifyReply, tellServer: (served: Served | null) => void) {
    this.#reply = reply
    this.#tellServer = tellServer
  }

  begin(contentType: string, served: Served | null): void {
    const { raw } = this.#reply
    this.hasBegun = true
    this.#tellServer(served)
    this.#reply.hijack()
    if (raw.destroyed) return
    for (const [name, value] of Object.entries(this.#reply.getHeaders()))
      if (value !== undefined) raw.setHeader(name, value)
    raw.writeHead(200, { 'content-type': contentType, 'cache-control': 'no-cache', 'x-accel-buffering': 'no' })
    raw.flushHeaders()
  }

  /** A reader that falls too far behind is let go. The call goes on to its end, and its record has all of it. */
  write(bytes: Uint8Array): void {
    const { raw } = this.#reply
    if (raw.destroyed) return
    // Nobody has taken at once an event with a picture in it.
    if (raw.writableLength > MAX_UNSENT_BYTES + this.#largestBytes) {
      raw.destroy()
      return
    }
    this.#largestBytes = Math.max(this.#largestBytes, bytes.length)
    raw.write(bytes)
  }

  fail(error: object): void {
    const { raw } = this.#reply
    if (!raw.destroyed) raw.end(`data: ${JSON.stringify({ error })}\n\n`)
  }

  end(): void {
    this.#reply.raw.end()
  }
}
