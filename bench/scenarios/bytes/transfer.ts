/** 1 GiB in and out, against the same pipeline on a raw body and a plain file sent back. */
import type { Figure } from '../../kit/figure.ts'
import { forkServer } from '../../kit/server-child.ts'
import { download, MEGABYTES, type Sent, toRatio, toUpload } from '../../kit/transfer.ts'

const ROUNDS = 3

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
    const ours = await client.ask<Sent>('upload', toUpload(atelier, round))
    if (ours.status !== 201) throw new Error(`upload answered ${ours.status}: ${ours.body}`)
    afterUploads = await atelier.usage()
    times.bareUp.push(raw.millis)
    times.atelierUp.push(ours.millis)
    times.bareDown.push(await download(client, { url: `${bare.url}/${(JSON.parse(raw.body) as { id: string }).id}` }))
    const { id } = JSON.parse(ours.body) as { id: string }
    times.atelierDown.push(await download(client, { url: `${atelier.url}/api/v2/assets/${id}/content` }))
  }
  return [
    toRatio('1 GiB upload against the same pipeline on a raw body', times.bareUp, times.atelierUp, { bar: 0.7 }),
    toRatio('1 GiB download against a plain file sent by node:http', times.bareDown, times.atelierDown, { bar: 0.7 }),
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
