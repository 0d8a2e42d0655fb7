/** Reads a `text/event-stream` as it arrives: event names with JSON payloads. Comments only show that the server is alive. */

export interface StreamEvent {
  readonly name: string
  readonly data: unknown
}

// The largest event is a preview picture; a larger frame means that this is no event stream.
const MAX_FRAME_CHARS = 64 * 2 ** 20

/** Accepts text in chunks of any size and returns whole events. Frames without a name or with a payload that is not JSON are skipped. */
export function createEventParser(): (text: string) => StreamEvent[] {
  let waiting = ''
  return function parse(text) {
    waiting += text
    if (waiting.length > MAX_FRAME_CHARS) throw new Error('the event stream has no end of frame')
    const events: StreamEvent[] = []
    while (true) {
      const end = /\r?\n\r?\n/.exec(waiting)
      if (end === null) return events
      const event = toEvent(waiting.slice(0, end.index))
      if (event !== null) events.push(event)
      waiting = waiting.slice(end.index + end[0].length)
    }
  }
}

function toEvent(frame: string): StreamEvent | null {
  let name = ''
  const data: string[] = []
  for (const line of frame.split(/\r?\n/)) {
    const [, field, value] = /^([^:]+): ?(.*)$/.exec(line) ?? []
    if (field === 'event') name = value
    if (field === 'data') data.push(value)
  }
  if (name === '' || data.length === 0) return null
  try {
    return { name, data: JSON.parse(data.join('\n')) }
  } catch {
    return null
  }
}

/** Throws when the stream is silent for longer than `idleMs`: the server promises a sign of life every 15 s. */
export async function* readEvents(body: ReadableStream<Uint8Array>, idleMs: number): AsyncGenerator<StreamEvent> {
  const parse = createEventParser()
  const decoder = new TextDecoder()
  const reader = body.getReader()
  try {
    while (true) {
      const { done, value } = await readWithin(reader, idleMs)
      if (done) return
      yield* parse(decoder.decode(value, { stream: true }))
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

async function readWithin(reader: ReadableStreamDefaultReader<Uint8Array>, ms: number) {
  const { promise: idle, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`no sign of life for ${ms / 1000} s`)), ms)
  try {
    return await Promise.race([reader.read(), idle])
  } finally {
    clearTimeout(timer)
  }
}
