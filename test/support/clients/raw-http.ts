/** Sends one request as raw bytes on a socket, for malformed requests. The answer is split into its parts, not interpreted. */
import { connect } from 'node:net'
import { GIVE_UP_MS } from '../wait-until.ts'

export interface RawAnswer {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
}

export interface RawRequest {
  readonly url: string
  readonly bytes: Uint8Array | string
  /** End our side after sending. */
  readonly halfClose?: boolean
  readonly withinMs?: number
}

/** null when the server closed the connection without an answer. */
export function sendRaw({
  url,
  bytes,
  halfClose = true,
  withinMs = GIVE_UP_MS,
}: RawRequest): Promise<RawAnswer | null> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true })
    const chunks: Buffer[] = []
    const timer = setTimeout(() => {
      socket.destroy()
      reject(
        new Error(
          `no end within ${withinMs} ms, so far ${JSON.stringify(Buffer.concat(chunks).toString().slice(0, 500))}`,
        ),
      )
    }, withinMs)
    const settle = () => {
      clearTimeout(timer)
      socket.destroy()
      resolve(parseAnswer(Buffer.concat(chunks).toString()))
    }
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.on('end', settle)
    socket.on('error', settle)
    socket.on('close', settle)
    socket.write(bytes)
    if (halfClose) socket.end()
  })
}

function parseAnswer(text: string): RawAnswer | null {
  const headEnd = text.indexOf('\r\n\r\n')
  const status = /^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]
  if (status === undefined || headEnd < 0) return null
  const lines = text.slice(0, headEnd).split('\r\n').slice(1)
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const
    }),
  )
  return { status: Number(status), headers, body: text.slice(headEnd + 4) }
}
