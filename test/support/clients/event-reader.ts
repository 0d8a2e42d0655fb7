/** Reads an event stream off a socket, frame by frame; comments count as frames, so that a test can wait for them. */
import { connect, type Socket } from 'node:net'

export interface Frame {
  /** The event's name, or `comment`. */
  readonly event: string
  // Whatever JSON the frame carried; a comment's text.
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
  readonly data: any
}

export interface EventReader extends Disposable {
  readonly socket: Socket
  /** Status line and headers; resolves once they are complete. */
  readonly head: Promise<string>
  /** The next frame; null when the stream has ended. */
  next(): Promise<Frame | null>
  /** Everything until the end. */
  rest(): Promise<Frame[]>
}

export function openEvents(url: string, path: string, headers: Readonly<Record<string, string>> = {}): EventReader {
  const { hostname, port, host } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port) })
  const lines = Object.entries({ Host: host, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`)
  const { promise: head, resolve: tellHead } = Promise.withResolvers<string>()
  const frames: Frame[] = []
  const waiting: ((frame: Frame | null) => void)[] = []
  let text = ''
  let hasHead = false
  let hasEnded = false

  function take(): void {
    if (!hasHead) {
      const end = text.indexOf('\r\n\r\n')
      if (end === -1) return
      hasHead = true
      tellHead(text.slice(0, end))
      text = text.slice(end + 4)
    }
    for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n')) {
      frames.push(toFrame(text.slice(0, end)))
      text = text.slice(end + 2)
    }
    while (frames.length > 0 && waiting.length > 0) waiting.shift()!(frames.shift()!)
    if (hasEnded) for (const tell of waiting.splice(0)) tell(null)
  }

  socket.setEncoding('utf8')
  socket.on('data', (chunk: string) => {
    text += chunk
    take()
  })
  const end = () => {
    hasEnded = true
    if (!hasHead) tellHead(text)
    take()
  }
  socket.on('close', end)
  socket.on('error', end)

  function next(): Promise<Frame | null> {
    const frame = frames.shift()
    if (frame !== undefined) return Promise.resolve(frame)
    if (hasEnded) return Promise.resolve(null)
    return new Promise((resolve) => waiting.push(resolve))
  }

  return {
    socket,
    head,
    next,
    async rest() {
      const all: Frame[] = []
      for (let frame = await next(); frame !== null; frame = await next()) all.push(frame)
      return all
    },
    [Symbol.dispose]: () => void socket.destroy(),
  }
}

function toFrame(block: string): Frame {
  if (block.startsWith(':')) return { event: 'comment', data: block.slice(1).trim() }
  const match = /^event: (\w+)\ndata: (.*)$/.exec(block)
  if (match === null) throw new Error(`not a frame of the contract: ${JSON.stringify(block)}`)
  return { event: match[1], data: JSON.parse(match[2]) }
}
