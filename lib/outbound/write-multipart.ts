/** Writes a multipart form as a stream whose length is known beforehand: servers and proxies buffer a form without one. */
import { randomBytes } from 'node:crypto'

export type FormPart =
  | { readonly name: string; readonly value: string; readonly contentType?: string }
  | {
      readonly name: string
      readonly filename: string
      readonly contentType: string
      readonly sizeBytes: number
      read(): AsyncIterable<Uint8Array> | Iterable<Uint8Array>
    }

export interface MultipartBody {
  readonly boundary: string
  readonly headers: Readonly<Record<'content-type' | 'content-length', string>>
  readonly body: AsyncIterable<Uint8Array>
}

export function writeMultipart(parts: readonly FormPart[]): MultipartBody {
  const boundary = `form-${randomBytes(16).toString('hex')}`
  const pieces = parts.map((part) => ({ part, head: Buffer.from(headOf(part, boundary)) }))
  const tail = Buffer.from(`--${boundary}--\r\n`)
  const sizes = pieces.map(({ part, head }) => head.length + ('value' in part ? 0 : part.sizeBytes + LINE_END.length))
  return {
    boundary,
    headers: {
      'content-type': `multipart/form-data; boundary=${boundary}`,
      'content-length': String(sizes.reduce((sum, size) => sum + size, tail.length)),
    },
    body: writeAll(pieces, tail),
  }
}

interface Piece {
  readonly part: FormPart
  readonly head: Buffer
}

async function* writeAll(pieces: readonly Piece[], tail: Buffer): AsyncGenerator<Uint8Array> {
  for (const { part, head } of pieces) {
    yield head
    if ('value' in part) continue
    yield* part.read()
    yield LINE_END
  }
  yield tail
}

const LINE_END = Buffer.from('\r\n')

/** The header of a part. For a field it includes the value, which is short. */
function headOf(part: FormPart, boundary: string): string {
  const start = `--${boundary}\r\nContent-Disposition: form-data; name="${quote(part.name)}"`
  const type = part.contentType === undefined ? '' : `\r\nContent-Type: ${part.contentType}`
  if ('value' in part) return `${start}${type}\r\n\r\n${part.value}\r\n`
  return `${start}; filename="${quote(part.filename)}"${type}\r\n\r\n`
}

/** Escapes as browsers do, so that nothing in a name can end the header. */
function quote(text: string): string {
  return text.replaceAll('"', '%22').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
}
