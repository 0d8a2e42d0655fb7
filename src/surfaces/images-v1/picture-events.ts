/** Pictures as a stream of events, in the form of OpenAI; and what is told of a picture, in a stream or not. */
import type { FastifyReply } from 'fastify'
import type { Clock } from '../../../lib/clock.ts'
import type { Picture, SizedPicture } from '../../domain/assets/pictures.ts'
import type { OpenAIError } from '../kit/openai-errors.ts'
import { encodeFrame } from '../kit/streams/sse.ts'
import type { SurfaceParts } from '../kit/surface-parts.ts'

const KEEPALIVE_MS = 15_000
const KEEPALIVE = ': keepalive\n\n'
export const NO_TOKENS = {
  ...{ input_tokens: 0, output_tokens: 0, total_tokens: 0 },
  input_tokens_details: { image_tokens: 0, text_tokens: 0 },
}

/** Of a format that is not read here the size is not known. */
export type MadeContent = SizedPicture | (Picture & { readonly width: null; readonly height: null })

export function toAbout({ contentType, width, height }: Omit<MadeContent, 'bytes'>) {
  const format = contentType.slice('image/'.length)
  const size = width === null ? {} : { size: `${width}x${height}` }
  return { output_format: format, ...size, quality: 'auto', background: 'auto' }
}

interface EventDeps {
  /** What the names of the events begin with. */
  readonly event: 'image_generation' | 'image_edit'
  readonly ticker: SurfaceParts['endpoints']['ticker']
  readonly clock: Clock
}

/** The connection is a stream from its first event on, which may be one that only keeps it open. It ends with `end`. */
export class PictureEvents {
  readonly #reply: FastifyReply
  readonly #deps: EventDeps
  readonly #stopKeepalive: () => void
  hasBegun = false

  constructor(reply: FastifyReply, deps: EventDeps) {
    this.#reply = reply
    this.#deps = deps
    this.#stopKeepalive = deps.ticker.every(KEEPALIVE_MS, () => this.#write(KEEPALIVE))
  }

  send(name: 'partial_image' | 'completed', { bytes, ...about }: MadeContent, more: object): void {
    const { event, clock } = this.#deps
    const type = `${event}.${name}`
    const b64_json = Buffer.from(bytes).toString('base64')
    const created_at = Math.floor(clock.now().getTime() / 1000)
    this.#write(encodeFrame(type, JSON.stringify({ type, b64_json, created_at, ...toAbout(about), ...more })))
  }

  fail(error: OpenAIError): void {
    this.#write(encodeFrame('error', JSON.stringify({ error })))
  }

  /** Also where nothing has been written: then the reply is still free for an answer. */
  end(): void {
    this.#stopKeepalive()
    if (this.hasBegun) this.#reply.raw.end()
  }

  #write(frame: Buffer | string): void {
    const { raw } = this.#reply
    if (!this.hasBegun) {
      this.hasBegun = true
      this.#reply.hijack()
      for (const [name, value] of Object.entries(this.#reply.getHeaders()))
        if (value !== undefined) raw.setHeader(name, value)
      raw.writeHead(200, {
        'content-type': 'text/event-stream',
        'cache-control': 'no-cache',
        'x-accel-buffering': 'no',
      })
    }
    if (!raw.destroyed) raw.write(frame)
  }
}
