/** A file over `/view`, with ranges, and with everything that can go wrong on the way. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { typeFromName } from '../../../../../lib/files/mime.ts'
import { type FakeFaults, strikes } from '../faults.ts'

interface Sent {
  readonly bytes: Buffer
  readonly faults: FakeFaults
  readonly name: string
}

interface Call {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

export function sendFile({ request, response }: Call, { bytes, faults, name }: Sent): void {
  if (strikes(faults, 'dropView')) return void response.destroy()
  if (request.method === 'HEAD') {
    if (faults.viewHeadStatus !== null) return void response.writeHead(faults.viewHeadStatus).end()
  } else {
    if (strikes(faults, 'viewError')) return void response.writeHead(500).end('500')
    if (strikes(faults, 'viewMissing')) return void response.writeHead(404).end()
  }
  const from = faults.noRanges ? 0 : Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0)
  if (from > 0 && from >= bytes.length) {
    return void response.writeHead(416, { 'content-range': `bytes */${bytes.length}` }).end()
  }
  const part = bytes.subarray(from)
  const isTooLong = request.method !== 'HEAD' && strikes(faults, 'viewWrongLength')
  response.writeHead(from > 0 ? 206 : 200, {
    'content-type': typeFromName(name) ?? 'application/octet-stream',
    'content-length': String(part.length + (isTooLong ? 100 : 0)),
    etag: `"${bytes.length}"`,
    'accept-ranges': 'bytes',
    ...(from > 0 ? { 'content-range': `bytes ${from}-${bytes.length - 1}/${bytes.length}` } : {}),
  })
  if (request.method === 'HEAD') return void response.end()
  if (isTooLong) return void response.write(part, () => response.socket?.destroy())
  if (strikes(faults, 'viewTruncated'))
    return void response.write(part.subarray(0, Math.ceil(part.length / 2)), () => response.socket?.destroy())
  if (faults.viewBytesPerSecond === null) response.end(part)
  else trickle(response, part, faults.viewBytesPerSecond)
}

function trickle(response: ServerResponse, bytes: Buffer, perSecond: number): void {
  let at = 0
  const timer = setInterval(() => {
    response.write(bytes.subarray(at, at + 1))
    at++
    if (at < bytes.length) return
    clearInterval(timer)
    response.end()
  }, 1000 / perSecond)
  response.on('close', () => clearInterval(timer))
}
