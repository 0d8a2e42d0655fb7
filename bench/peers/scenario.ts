/**
 * `npm run bench peers`: ours and others on the same work in one run, each as its users start it, in turns. What is not on this machine is left
 * out (found-peers.ts). docs/performance.md has a table of it.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { type Figure, toTable } from '../kit/figure.ts'
import { measureJobServices, type ServiceFigures } from './job-services.ts'
import { measureRouted, type RoutedRow } from './routed-calls.ts'

export async function peers(): Promise<Figure[]> {
  const routed = await measureRouted()
  console.log(toTable(routed.map(toRoutedRow), ['router', 'added, median', 'added, 99 of 100', 'calls a second']))
  const services = await measureJobServices()
  console.log(toTable(toServiceRows(services), ['', ...services.keys()]))
  mkdirSync('bench/results', { recursive: true })
  const result = { routed, services: Object.fromEntries(services) }
  writeFileSync('bench/results/peers.json', `${JSON.stringify(result, null, 2)}\n`)
  return toRoutedFigures(routed)
}

type Values = readonly [median: number, least: number, most: number]

function toText([median, least, most]: Values, unit: string): string {
  const digits = median < 100 ? 1 : 0
  return `${median.toFixed(digits)}${unit === '' ? '' : ` ${unit}`} (${least.toFixed(digits)} to ${most.toFixed(digits)})`
}

function toRoutedRow({ router, added, perSecond }: RoutedRow): string[] {
  return [router, toText(added.p50, 'ms'), toText(added.p99, 'ms'), toText(perSecond.perSecond, '/s')]
}

const SERVICE_ROWS: Readonly<Record<keyof ServiceFigures, readonly [name: string, unit: string]>> = {
  startedMs: ['start to the first answer', 'ms'],
  restingMib: ['memory after the start', 'MiB'],
  reads: ['GET of a job', '/s'],
  submits: ['POST of a job', '/s'],
  textJobs: ['1,000 text jobs to their ends', 's'],
  pictureJobs: ['1,000 picture jobs to their ends', 's'],
  uploadMibPerSecond: ['upload of 1 GiB', 'MiB/s'],
  uploadAddedMib: ['memory that the upload adds', 'MiB'],
  heldStreams: ['event streams held of 3,000', ''],
  streamsAddedMib: ['memory that they add', 'MiB'],
  busyMib: ['memory under load, the most', 'MiB'],
}

function toServiceRows(services: ReadonlyMap<string, ServiceFigures>): string[][] {
  return Object.entries(SERVICE_ROWS).map(([key, [name, unit]]) => [
    name,
    ...[...services.values()].map((figures) => toText(toValues(figures[key as keyof ServiceFigures]), unit)),
  ])
}

function toValues(values: readonly number[]): Values {
  const sorted = values.toSorted((a, b) => a - b)
  return [sorted[Math.floor(sorted.length / 2)] ?? 0, sorted[0] ?? 0, sorted.at(-1) ?? 0]
}

function toRoutedFigures(routed: readonly RoutedRow[]): Figure[] {
  const ours = routed.find(({ router }) => router === 'Atelier')
  const bare = routed.find(({ router }) => router === 'bare forwarder')
  if (ours === undefined || bare === undefined) return []
  const detail = { routed }
  const added = { unit: 'ms', direction: 'at_most', detail } as const
  const [p50] = ours.added.p50
  const [p99] = ours.added.p99
  const share = ours.perSecond.perSecond[0] / bare.perSecond.perSecond[0]
  return [
    { ...added, name: 'a routed chat call: added to 22 ms, median', measured: p50, bar: 2 },
    { ...added, name: 'a routed chat call: added to 22 ms, 99 of 100', measured: p99, bar: 8 },
    {
      ...{ name: 'routed chat calls a second against a bare forwarder', measured: share, unit: '%' },
      ...{ bar: 0.45, direction: 'at_least', detail },
    },
  ]
}
