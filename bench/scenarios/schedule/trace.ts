/** A load of picture jobs: read from a file of requests, or drawn. Times are pressed together to the length that is asked for. */
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import type { Arrival } from '../../../test/support/jobs/replay-load.ts'
import { seededRandom } from '../../../test/support/seeded-random.ts'

const COLUMNS = ['at_s', 'run_s', 'account', 'base_model', 'loras'] as const
const MAX_REQUESTS = 20_000
const DRAWN = { jobs: 4_000, accounts: 700, models: 60 }

/** CSV with a head, plain or gzipped: second of arrival, seconds of running, account, base model, number of LoRAs, in order of arrival. */
export function readTrace(path: string, spanMs: number): readonly Arrival[] {
  const bytes = readFileSync(path)
  const text = (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8')
  const [head = '', ...lines] = text.trim().split(/\r?\n/)
  const places = COLUMNS.map((name) => head.split(',').indexOf(name))
  if (places.includes(-1)) throw new Error(`${path} needs the columns ${COLUMNS.join(', ')}; it has ${head}`)
  if (lines.length > MAX_REQUESTS) console.log(`${lines.length} requests: the first ${MAX_REQUESTS} are replayed`)
  const rows = lines.slice(0, MAX_REQUESTS).map((line) => {
    const cells = line.split(',')
    const [at, run, accountId = '', model = '', loras] = places.map((place) => cells[place])
    // Some never ran, and name no model.
    return { at: Number(at), run: Number(run) || 0, accountId, model: model || 'no model', loras: Number(loras) }
  })
  const [first, last] = [rows[0]?.at ?? 0, rows.at(-1)?.at ?? 0]
  const pace = spanMs / Math.max(1, last - first)
  return rows.map(({ at, run, accountId, model, loras }) => ({
    atMs: (at - first) * pace,
    runMs: Math.max(1, run) * 1000,
    accountId,
    lane: model,
    addition: loras > 0 ? `${accountId} ${loras}` : null,
  }))
}

/** Like such a file: few accounts and models with much, most with little, runs of some twenty seconds, arrivals in bursts. */
export function drawTrace(spanMs: number): readonly Arrival[] {
  const { next: random } = seededRandom(40)
  const skewed = (count: number) => Math.floor(count * random() ** 2.5)
  const modelsOf = Array.from({ length: DRAWN.accounts }, () => [skewed(DRAWN.models), skewed(DRAWN.models)])
  const bursts = Array.from({ length: 24 }, () => random() ** 2)
  const weight = bursts.reduce((sum, each) => sum + each, 0)
  const arrivals = bursts.flatMap((share, hour) =>
    Array.from({ length: Math.round((DRAWN.jobs * share) / weight) }, (): Arrival => {
      const account = skewed(DRAWN.accounts)
      return {
        atMs: ((hour + random()) / bursts.length) * spanMs,
        runMs: Math.round(1000 * Math.min(500, 8 + 22 * (-Math.log(1 - random())) ** 1.2)),
        accountId: `account-${account}`,
        lane: `model-${modelsOf[account]?.[random() < 0.8 ? 0 : 1] ?? 0}`,
        addition: random() < 0.15 ? `lora of ${account}` : null,
      }
    }),
  )
  return arrivals.sort((one, other) => one.atMs - other.atMs)
}
