/** How a fake storage reads requests and writes answers. */
import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { crc32 } from 'node:zlib'
import { sleep } from '../../../lib/waiting/sleep.ts'
import type { S3Fault, S3Operation } from './s3-faults.ts'

export function operationOf(method: string, at: URL, bucket: string): S3Operation | null {
  const query = at.searchParams
  const hasKey = at.pathname.length > bucket.length + 2
  if (method === 'GET' && !hasKey) return query.has('uploads') ? 'list_uploads' : 'list'
  if (method === 'GET') return query.has('uploadId') ? 'list_parts' : 'get'
  if (method === 'HEAD') return 'head'
  if (method === 'PUT') return query.has('partNumber') ? 'put_part' : 'put'
  if (method === 'POST') return query.has('uploads') ? 'begin_upload' : query.has('uploadId') ? 'complete_upload' : null
  if (method === 'DELETE') return query.has('uploadId') ? 'abort_upload' : 'delete'
  return null
}

export function checkBody(request: IncomingMessage, sent: Buffer): string | null {
  if (Number(request.headers['content-length'] ?? 0) !== sent.length) return 'IncompleteBody'
  const hash = request.headers['x-amz-content-sha256']
  if (hash !== undefined && hash !== 'UNSIGNED-PAYLOAD' && hash !== createHash('sha256').update(sent).digest('hex'))
    return 'XAmzContentSHA256Mismatch'
  const sum = request.headers['x-amz-checksum-crc32']
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(crc32(sent))
  return sum === undefined || sum === bytes.toString('base64') ? null : 'BadDigest'
}

export function collect(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => resolve(Buffer.concat(chunks)))
    request.on('error', reject)
  })
}

/** Reads a share of the body, then nothing for a while, and so on. */
export async function sip(request: IncomingMessage, { pauses, pauseMs }: S3Fault & { kind: 'sip' }): Promise<Buffer> {
  const share = Math.ceil(Number(request.headers['content-length']) / (pauses + 1))
  const chunks: Buffer[] = []
  let [taken, paused] = [0, 0]
  for await (const chunk of request as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    taken += chunk.length
    for (; paused < pauses && taken >= share * (paused + 1); paused++) await sleep(pauseMs)
  }
  return Buffer.concat(chunks)
}

/** As the first service does while it joins many parts: it has said 200 and may fail all the same. */
export async function keepAlive(
  response: ServerResponse,
  result: Buffer,
  { blanks, everyMs, code }: S3Fault & { kind: 'keep_alive' },
): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/xml' })
  for (let count = 0; count < blanks; count++) {
    response.write(count === 0 ? ' '.repeat(10_000) : ' ')
    await sleep(everyMs)
  }
  response.end(code === null ? result : `<Error><Code>${code}</Code></Error>`)
}

export function etagOf(bytes: Buffer): string {
  return `"${crc32(bytes).toString(16).padStart(32, '0')}"`
}

export function xml(text: string) {
  const body = Buffer.from(`<?xml version="1.0" encoding="UTF-8"?>${text}`)
  return { status: 200, headers: { 'content-type': 'application/xml', 'content-length': String(body.length) }, body }
}

export function toXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

export function refuse(response: ServerResponse, status: number, code: string, message = '', more = ''): void {
  const body = `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>${toXml(message)}</Message>${more}</Error>`
  response.writeHead(status, { 'content-type': 'application/xml', 'content-length': String(Buffer.byteLength(body)) })
  response.end(response.req.method === 'HEAD' ? undefined : body)
}
