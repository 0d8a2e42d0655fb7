/** Reads the one form that is ever uploaded here. */
import type { IncomingMessage } from 'node:http'
import type { Folder } from '../files.ts'

export interface Upload {
  readonly filename: string
  readonly subfolder: string
  readonly type: Folder
  readonly bytes: Buffer
}

export function readUpload(request: IncomingMessage, body: Buffer): Upload | null {
  const boundary = /boundary=([^;]+)/.exec(request.headers['content-type'] ?? '')?.[1]
  if (boundary === undefined) return null
  const fields: Record<string, string> = {}
  let file: { filename: string; bytes: Buffer } | null = null
  const marker = Buffer.from(`--${boundary}`)
  let start = body.indexOf(marker)
  while (start !== -1) {
    const next = body.indexOf(marker, start + marker.length)
    if (next === -1) break
    const part = body.subarray(start + marker.length + 2, next - 2)
    const split = part.indexOf('\r\n\r\n')
    const head = part.toString('utf8', 0, split)
    const bytes = part.subarray(split + 4)
    const name = / name="([^"]*)"/.exec(head)?.[1] ?? ''
    const filename = /filename="([^"]*)"/.exec(head)?.[1]
    if (filename === undefined) fields[name] = bytes.toString('utf8')
    else file = { filename, bytes: Buffer.from(bytes) }
    start = next
  }
  if (file === null) return null
  return { ...file, subfolder: fields.subfolder ?? '', type: (fields.type ?? 'input') as Folder }
}
