/** 1 GiB in and out, against the same pipeline on a raw body and a plain file sent back. */
import type { Figure } from '../kit/figure.ts'
import { forkServer, type ServerChild } from '../kit/server-child.ts'

const MEGABYTES = 1024
const ROUNDS = 3
const BOUNDARY = 'atelier-bench-boundary'

interface Sent {
  readonly millis: number
  readonly status: number
  readonly body: string
}

export async function transfer(): Promise<Figure[]> {
  await using atelier = await forkServer('bench/servers/atelier.ts')
  await using bare = await forkServer('bench/servers/bare-upload.ts')
  await using client = await forkServer('bench/servers/upload-client.ts')
  const times = {
    atelierUp: [] as number[],
    bareUp: [] as number[],
    atelierDown: [] as number[],
    bareDown: [] as number[],
  }
  const idle = await atelier.usage()
  let afterUploads = idle
  for (let round = 0; round < ROUNDS; round++) {
    const raw = await client.ask<Sent>('upload', {
      url: bare.url,
      megabytes: MEGABYTES,
      head: '',
      tail: '',
      contentType: 'application/octet-stream',
      salt: round,
    })
    const ours = await client.ask<Sent>('upload', multipartTo(atelier, round))
    if (ours.status !== 201) throw new Error(`upload answered ${ours.status}: ${ours.body}`)
    afterUploads = await atelier.usage()
    times.bareUp.push(raw.millis)
    times.atelierUp.push(ours.millis)
    times.bareDown.push(await download(client, `${bare.url}/${(JSON.parse(raw.body) as { id: string }).id}`))
    const { id } = JSON.parse(ours.body) as { id: string }
    times.atelierDown.push(await download(client, `${atelier.url}/api/v2/assets/${id}/content`))
  }
  return [
    ratio('1 GiB upload against the same pipeline on a raw body', times.bareUp, times.atelierUp, 0.7),
    ratio('1 GiB download against a plain file sent by node:http', times.bareDown, times.atelierDown, 0.7),
    {
      name: 'memory that a 1 GiB upload adds',
      measured: (afterUploads.rssBytes - idle.rssBytes) / 2 ** 20,
      unit: 'MiB',
      bar: 64,
      direction: 'at_most',
      detail: {},
    },
  ]
}

function multipartTo(server: ServerChild, salt: number): object {
  const field = (name: string, value: string) =>
    `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
  return {
    url: `${server.url}/api/v2/assets`,
    megabytes: MEGABYTES,
    head: `${field('content_type', 'application/octet-stream')}${field('file_path', `bench-${salt}.bin`)}--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="bench.bin"\r\nContent-Type: application/octet-stream\r\n\r\n`,
    tail: `\r\n--${BOUNDARY}--\r\n`,
    contentType: `multipart/form-data; boundary=${BOUNDARY}`,
    salt: salt + 1000,
  }
}

async function download(client: ServerChild, url: string): Promise<number> {
  const { millis, bytes } = await client.ask<{ millis: number; bytes: number }>('download', url)
  if (bytes !== MEGABYTES * 2 ** 20) throw new Error(`${url} sent ${bytes} bytes`)
  return millis
}

function ratio(name: string, bare: number[], ours: number[], bar: number): Figure {
  const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]
  const megabytesPerSecond = (millis: number) => Math.round((MEGABYTES / millis) * 1000)
  return {
    name,
    measured: median(bare) / median(ours),
    unit: '%',
    bar,
    direction: 'at_least',
    detail: { bareMBps: megabytesPerSecond(median(bare)), atelierMBps: megabytesPerSecond(median(ours)) },
  }
}
