/** Streams of server-sent events, as they come: an event is given on before the next one is read. */
import { AtelierError, askResponse, type CallOptions, type Client, type Route } from './core.ts'

/** An event of a stream whose events the specification does not name. */
export interface StreamEvent {
  readonly event: string
  readonly data: unknown
}

// Previews are the largest, with some hundred kilobytes.
const EVENT_MAX_LENGTH = 16 * 1024 * 1024

/** Ends when the stream does, and lets go of it when the loop is left. */
export async function* askEvents<T>(
  client: Client,
  route: Route,
  input: object,
  options: CallOptions = {},
): AsyncGenerator<T, void, undefined> {
  const response = await askResponse(client, { accept: 'text/event-stream', ...route }, input, options)
  if (response.body === null) return
  let event = 'message'
  let data: string[] = []
  for await (const line of readLines(response.body)) {
    if (line === '') {
      if (data.length > 0) yield { event, data: toValue(data.join('\n')) } as T
      event = 'message'
      data = []
      continue
    }
    const at = line.indexOf(':')
    const field = at === -1 ? line : line.slice(0, at)
    const value = at === -1 ? '' : line.slice(at + 1).replace(/^ /, '')
    if (field === 'event') event = value
    if (field === 'data') data.push(value)
  }
}

function toValue(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

async function* readLines(body: ReadableStream<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      rest += done ? decoder.decode() : decoder.decode(value, { stream: true })
      if (rest.length > EVENT_MAX_LENGTH)
        throw new AtelierError('an event of the stream is longer than any of the service', { code: 'not_atelier' })
      const lines = rest.split(/\r?\n/)
      rest = lines.pop() ?? ''
      yield* lines
      if (done) return
    }
  } finally {
    // Also of whoever left the loop early: the service then stops to send.
    await reader.cancel().catch(() => {})
  }
}
