/** Holds many event streams open on raw sockets in a process of its own and reports when a marked frame has reached all of them. */
import { connect, type Socket } from 'node:net'
import { readSettings, reportToParent } from '../kit/server-child.ts'

const { url } = readSettings<{ url: string }>()
const { hostname, port, host } = new URL(url)
const sockets: Socket[] = []
let connected = 0
let received = 0
let marker = ''
let lastReceivedAt = 0

function open(path: string): void {
  const socket = connect(Number(port), hostname)
  let first = true
  let seen = ''
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAccept: text/event-stream\r\n\r\n`)
  socket.on('data', (chunk) => {
    const text = chunk.toString('latin1')
    if (first && text.includes('event: status')) {
      first = false
      connected++
    }
    if (marker !== '' && seen !== marker && text.includes(marker)) {
      seen = marker
      received++
      lastReceivedAt = Date.now()
    }
  })
  socket.on('error', () => {})
  sockets.push(socket)
}

async function openAll(path: string, count: number): Promise<number> {
  while (sockets.length < count) {
    open(path)
    // The listener's backlog is finite: wait for what is under way before opening more.
    while (sockets.length - connected > 200) await new Promise((resolve) => setTimeout(resolve, 2))
  }
  while (connected < count) await new Promise((resolve) => setTimeout(resolve, 5))
  return connected
}

/** How many of `count` streams are open when all are, or when the time is over. */
async function tryAll(path: string, count: number, withinMs: number): Promise<number> {
  const overAt = Date.now() + withinMs
  for (let index = 0; index < count; index++) {
    open(path)
    if (index % 100 === 99) await new Promise((resolve) => setTimeout(resolve, 20))
  }
  while (connected < count && Date.now() < overAt) await new Promise((resolve) => setTimeout(resolve, 20))
  return connected
}

reportToParent('', {
  async handle(command, argument) {
    if (command === 'open') {
      const { path, count } = argument as { path: string; count: number }
      return openAll(path, count)
    }
    if (command === 'try') {
      const { path, count, withinMs } = argument as { path: string; count: number; withinMs: number }
      return tryAll(path, count, withinMs)
    }
    if (command === 'expect') {
      marker = argument as string
      received = 0
      return null
    }
    return { received, lastReceivedAt }
  },
  async close() {
    for (const socket of sockets) socket.destroy()
  },
})
