/**
 * Holds many sockets of the Legacy v1 API open in a process of its own. Each checks that steps and previews come without a
 * gap and in order; some can be told to stop reading. Raw sockets and the least parsing, so that the clients are not what is
 * measured.
 */
import { connect, type Socket } from 'node:net'
import { readSettings, reportToParent } from '../kit/server-child.ts'

const { url } = readSettings<{ url: string }>()
const { hostname, port, host } = new URL(url)

interface Client {
  readonly socket: Socket
  readonly isStalled: boolean
  rest: Buffer
  isOpen: boolean
  isClosed: boolean
  steps: number
  previews: number
  isInOrder: boolean
}

const clients: Client[] = []
const latencies: number[] = []
const STEP = /"type":"progress","data":\{"value":(\d+)/

function open(index: number, isStalled: boolean): void {
  const socket = connect(Number(port), hostname)
  const counts = { isOpen: false, isClosed: false, steps: 0, previews: 0, isInOrder: true }
  const client: Client = { socket, isStalled, rest: Buffer.alloc(0), ...counts }
  clients.push(client)
  socket.write(
    `GET /ws?clientId=bench-${index} HTTP/1.1\r\nHost: ${host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  )
  socket.on('data', (chunk) => read(client, chunk))
  socket.on('error', () => {})
  socket.on('close', () => {
    client.isClosed = true
  })
}

function read(client: Client, chunk: Buffer): void {
  client.rest = client.rest.length === 0 ? chunk : Buffer.concat([client.rest, chunk])
  if (!client.isOpen) {
    const end = client.rest.indexOf('\r\n\r\n')
    if (end === -1) return
    client.isOpen = true
    client.rest = client.rest.subarray(end + 4)
    if (client.isStalled) client.socket.pause()
  }
  while (takeFrame(client));
}

/** One frame of a server: never masked, never in parts. False when it is not there as a whole. */
function takeFrame(client: Client): boolean {
  const { rest } = client
  if (rest.length < 2) return false
  const short = rest[1] & 0x7f
  const head = short < 126 ? 2 : short === 126 ? 4 : 10
  if (rest.length < head) return false
  const length = short < 126 ? short : short === 126 ? rest.readUInt16BE(2) : Number(rest.readBigUInt64BE(2))
  if (rest.length < head + length) return false
  hear(client, rest[0] & 0x0f, rest.subarray(head, head + length))
  client.rest = rest.subarray(head + length)
  return true
}

function hear(client: Client, opcode: number, payload: Buffer): void {
  if (opcode === 9) client.socket.write(Buffer.from([0x8a, 0x80, 0, 0, 0, 0]))
  else if (opcode === 2) {
    client.previews++
    client.isInOrder &&= payload.readUInt32BE(8) === client.previews
    latencies.push(Date.now() - payload.readDoubleBE(12))
  } else if (opcode === 1) {
    const step = STEP.exec(payload.subarray(0, 80).toString('latin1'))
    if (step === null) return
    client.steps++
    client.isInOrder &&= Number(step[1]) === client.steps
  }
}

async function openAll({ count, stalled }: { count: number; stalled: number }): Promise<number> {
  for (let index = 0; index < count + stalled; index++) {
    open(index, index >= count)
    // The listener's backlog is finite: wait for what is under way before opening more.
    while (clients.filter(({ isOpen }) => !isOpen).length > 100) await new Promise((resolve) => setTimeout(resolve, 2))
  }
  while (clients.some(({ isOpen }) => !isOpen)) await new Promise((resolve) => setTimeout(resolve, 5))
  return clients.length
}

function report({ steps }: { steps: number }) {
  const readers = clients.filter(({ isStalled }) => !isStalled)
  const complete = readers.filter(
    (one) => one.isInOrder && one.steps === steps && one.previews === steps && !one.isClosed,
  )
  const sorted = latencies.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
  return {
    readers: readers.length,
    complete: complete.length,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    worstMs: sorted.at(-1) ?? 0,
  }
}

reportToParent('', {
  async handle(command, argument) {
    if (command === 'open') return openAll(argument as { count: number; stalled: number })
    return report(argument as { steps: number })
  },
  async close() {
    for (const { socket } of clients) socket.destroy()
  },
})
