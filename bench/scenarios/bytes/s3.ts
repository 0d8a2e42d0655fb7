/**
 * 1 GiB in and out through a bucket, against the same service with its bytes in files. Downloads are measured in both ways: by the
 * redirect that clients get by default, and through the service.
 */
import { createClient } from '../../../lib/postgres/driver.ts'
import { startPostgres } from '../../../test/support/postgres/postgres-server.ts'
import type { Figure } from '../../kit/figure.ts'
import { forkServer, type ServerChild } from '../../kit/server-child.ts'
import { download, MEGABYTES, type Sent, toRatio, toUpload } from '../../kit/transfer.ts'

const ROUNDS = 3
const SHARED = { secretKey: 'ab'.repeat(32), workers: '0' }

export async function s3(): Promise<Figure[]> {
  await using postgres = await startPostgres()
  const forFiles = await createDatabase(postgres.url, 'for_files')
  const forBucket = await createDatabase(postgres.url, 'for_bucket')
  await using storage = await forkServer('bench/servers/bare-s3.ts')
  await using files = await forkServer('bench/servers/atelier.ts', { ...SHARED, database: forFiles })
  await using bucket = await forkServer('bench/servers/atelier.ts', {
    ...SHARED,
    database: forBucket,
    blobs: `s3://bench-bytes?endpoint=${storage.url}&pathStyle=1`,
    blobsKeys: 'id:secret',
  })
  await using client = await forkServer('bench/servers/upload-client.ts')
  const times = {
    filesUp: [] as number[],
    bucketUp: [] as number[],
    filesDown: [] as number[],
    directDown: [] as number[],
    proxiedDown: [] as number[],
  }
  const idle = await bucket.usage()
  const peaks = { up: 0, direct: 0, proxied: 0 }
  /** The most that the process holds above its start while this goes on. */
  const watched = async <T>(phase: keyof typeof peaks, work: Promise<T>): Promise<T> => {
    const look = async () => {
      peaks[phase] = Math.max(peaks[phase], ((await bucket.usage()).rssBytes - idle.rssBytes) / 2 ** 20)
    }
    const watching = setInterval(look, 100)
    const result = await work
    clearInterval(watching)
    await look()
    return result
  }
  for (let round = 0; round < ROUNDS; round++) {
    const inFiles = toContent(files, await upload(client, files, round, times.filesUp))
    times.filesDown.push(await download(client, { url: inFiles }))
    const inBucket = toContent(bucket, await watched('up', upload(client, bucket, round, times.bucketUp)))
    times.directDown.push(await watched('direct', download(client, { url: inBucket })))
    // What a page reads is not sent elsewhere.
    const proxied = download(client, { url: inBucket, headers: { 'sec-fetch-mode': 'cors' } })
    times.proxiedDown.push(await watched('proxied', proxied))
  }
  return [
    toRatio('1 GiB upload into a bucket against into files', times.filesUp, times.bucketUp, { bar: 0.7 }),
    toRatio('1 GiB download from a bucket against from files', times.filesDown, times.directDown, { bar: 0.7 }),
    // The bytes pass through two more sockets, and no second core helps the one that does it.
    toRatio('the same through the service, without the redirect', times.filesDown, times.proxiedDown, { bar: 0.5 }),
    {
      name: 'memory that 1 GiB through a bucket adds, at most at any time',
      measured: Math.max(...Object.values(peaks)),
      unit: 'MiB',
      bar: 64,
      direction: 'at_most',
      detail: { megabytes: MEGABYTES, peaks },
    },
  ]
}

async function createDatabase(serverUrl: string, name: string): Promise<string> {
  const client = createClient({ url: serverUrl })
  await client.connect()
  await client.query(`CREATE DATABASE ${name}`)
  await client.end()
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return url.href
}

async function upload(client: ServerChild, server: ServerChild, round: number, times: number[]): Promise<string> {
  const sent = await client.ask<Sent>('upload', toUpload(server, round))
  if (sent.status !== 201) throw new Error(`upload answered ${sent.status}: ${sent.body}`)
  times.push(sent.millis)
  return (JSON.parse(sent.body) as { id: string }).id
}

function toContent({ url }: ServerChild, assetId: string): string {
  return `${url}/api/v2/assets/${assetId}/content`
}
