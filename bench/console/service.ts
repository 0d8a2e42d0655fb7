/** What the console costs the service: a list, an open stream, a start. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Figure } from '../kit/figure.ts'
import type { ServerChild } from '../kit/server-child.ts'
import { atMost, quantile } from './budget.ts'

const ROUNDS = 60
const STREAMS = 500
const STARTS = 5
const KIB = 1024
const PARTS = fileURLToPath(new URL('../../scripts/built-parts.js', import.meta.url))

// As the page asks for it.
const LIST = '/console/v1/jobs?limit=100&compact=1'
const FILTERS = [
  '',
  '&status=failed',
  '&code=out_of_memory',
  '&class=UltimateSDUpscale',
  '&weights=flux1-dev.safetensors',
  '&meta.user=user-7',
  '&q=stored%2047',
]

export async function measureService(server: ServerChild): Promise<Figure[]> {
  const ask = async (path: string) => {
    const startedAt = performance.now()
    const answer = await fetch(server.url + path)
    const { byteLength } = await answer.arrayBuffer()
    if (!answer.ok) throw new Error(`${path} was answered ${answer.status}`)
    return { ms: performance.now() - startedAt, byteLength }
  }
  const median = async (path: string) => {
    const times: number[] = []
    for (let round = 0; round < ROUNDS; round++) times.push((await ask(path)).ms)
    return quantile(times, 0.5)
  }
  // The way there and back, without any work.
  const way = await median('/healthz')
  const lists: Record<string, number> = {}
  for (const filter of FILTERS) lists[filter || 'none'] = (await median(LIST + filter)) - way
  const { byteLength } = await ask(LIST)
  const slowest = Math.max(...Object.values(lists))
  return [
    atMost('100 summaries of 100,000 jobs', [lists['none'] ?? Number.NaN, 5], 'ms', { way, lists }),
    atMost('the same with the slowest single filter', [slowest, 10], 'ms', { way, lists }),
    atMost('size of 100 summaries', [byteLength / KIB, 40], 'KiB', {}),
    await measureStreams(server),
    measureStart(),
  ]
}

async function measureStreams(server: ServerChild): Promise<Figure> {
  const before = await server.settledUsage()
  const controller = new AbortController()
  const open = Array.from({ length: STREAMS }, async () => {
    const answer = await fetch(`${server.url}/console/v1/events`, { signal: controller.signal })
    return answer.body?.getReader().read()
  })
  await Promise.all(open)
  const after = await server.settledUsage()
  controller.abort()
  const each = (after.rssBytes - before.rssBytes) / STREAMS / KIB
  return atMost('memory of the service per open stream', [each, 24], 'KiB', { streams: STREAMS })
}

/** What `npm start` does for the console when nothing has changed, beside starting Node itself. */
function measureStart(): Figure {
  const time = (args: readonly string[]) => {
    const startedAt = performance.now()
    spawnSync(process.execPath, args, { stdio: 'ignore' })
    return performance.now() - startedAt
  }
  const digest = ['-e', `import(process.argv[1]).then((parts) => parts.digestConsole('.'))`, PARTS]
  const [bare, withDigest] = [['-e', '0'], digest].map((args) =>
    quantile(
      Array.from({ length: STARTS }, () => time(args)),
      0.5,
    ),
  ) as [number, number]
  return atMost('added to a start that has nothing to build', [withDigest - bare, 50], 'ms', { bare, withDigest })
}
