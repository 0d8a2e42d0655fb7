/** GET of a finished job, 64 connections, against node:http sending the same bytes. */

import { finishedJob } from '../kit/client-steps.ts'
import type { Figure } from '../kit/figure.ts'
import { alternate, measureLoad } from '../kit/load.ts'
import { forkServer } from '../kit/server-child.ts'

const ROUND = { connections: 64, seconds: 4, expectStatus: 200 }

export async function poll(): Promise<Figure[]> {
  await using atelier = await forkServer('bench/servers/atelier.ts')
  const job = await finishedJob(atelier.url)
  const path = `/api/v2/jobs/${job.id}`
  const body = await (await fetch(atelier.url + path)).text()
  await using bare = await forkServer('bench/servers/bare-get.ts', { body })
  await measureLoad(atelier, { ...ROUND, path, seconds: 2 })
  await measureLoad(bare, { ...ROUND, path, seconds: 2 })
  const results = await alternate(3, {
    bare: () => measureLoad(bare, { ...ROUND, path }),
    atelier: () => measureLoad(atelier, { ...ROUND, path }),
  })
  return [
    {
      name: 'GET job against bare node:http, same bytes',
      measured: results.atelier.requestsPerSecond / results.bare.requestsPerSecond,
      unit: '%',
      bar: 0.6,
      direction: 'at_least',
      detail: { ...results, bodyBytes: body.length },
    },
  ]
}
