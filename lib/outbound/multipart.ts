/** A multipart form with one file, streamed, its length known beforehand: servers and proxies buffer a form without one. */
import { randomUUID } from 'node:crypto'

export interface FormFile {
  readonly field: string
  readonly filename: string
  readonly contentType: string
  readonly sizeBytes: number
  read(): AsyncIterable<Uint8Array>
}

export interface MultipartBody {
  readonly headers: Readonly<Record<string, string>>
  readonly body: AsyncIterable<Uint8Array>
}

export function multipartOf(fields: Readonly<Record<string, string>>, file: FormFile): MultipartBody {
  const boundary = `atelier-${randomUUID()}`
  const part = (disposition: string) => `--${boundary}\r\nContent-Disposition: form-data; ${disposition}\r\n`
  const head = Buffer.from(
    Object.entries(fields)
      .map(([name, value]) => `${part(`name="${name}"`)}\r\n${value}\r\n`)
      .join('') +
      part(`name="${file.field}"; filename="${file.filename}"`) +
      `Content-Type: ${file.contentType}\r\n\r\n`,
  )
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`)
  return {
    headers: {
      'content-type': `multipart/form-data; boundary=${boundary}`,
      'content-length': String(head.length + file.sizeBytes + tail.length),
    },
    body: (async function* () {
      yield head
      yield* file.read()
      yield tail
    })(),
  }
}
