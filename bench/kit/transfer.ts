/** Large uploads and downloads by a client in a process of its own, and what they are compared by. */
import type { Figure } from './figure.ts'
import type { ServerChild } from './server-child.ts'

export const MEGABYTES = 1024
const BOUNDARY = 'atelier-bench-boundary'

export interface Sent {
  readonly millis: number
  readonly status: number
  readonly body: string
}

/** What the client is asked to upload: new bytes for every salt. */
export function toUpload(server: Pick<ServerChild, 'url'>, salt: number, megabytes = MEGABYTES): object {
  const field = (name: string, value: string) =>
    `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
  return {
    url: `${server.url}/api/v2/assets`,
    megabytes,
    head: `${field('content_type', 'application/octet-stream')}${field('file_path', `bench-${salt}.bin`)}--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="bench.bin"\r\nContent-Type: application/octet-stream\r\n\r\n`,
    tail: `\r\n--${BOUNDARY}--\r\n`,
    contentType: `multipart/form-data; boundary=${BOUNDARY}`,
    salt: salt + 1000,
  }
}

interface Wanted {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
}

export async function download(client: ServerChild, wanted: Wanted): Promise<number> {
  const { millis, bytes } = await client.ask<{ millis: number; bytes: number }>('download', wanted)
  if (bytes !== MEGABYTES * 2 ** 20) throw new Error(`${wanted.url} sent ${bytes} bytes`)
  return millis
}

export function toRatio(
  name: string,
  bare: number[],
  ours: number[],
  { bar, megabytes = MEGABYTES }: { readonly bar: number; readonly megabytes?: number },
): Figure {
  const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]
  const megabytesPerSecond = (millis: number) => Math.round((megabytes / millis) * 1000)
  return {
    name,
    measured: median(bare) / median(ours),
    unit: '%',
    bar,
    direction: 'at_least',
    detail: { bareMBps: megabytesPerSecond(median(bare)), atelierMBps: megabytesPerSecond(median(ours)) },
  }
}
