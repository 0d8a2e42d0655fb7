/** The service at a glance: what is red comes first, then the queue by pool, then the engines. */
import { useRef } from 'preact/hooks'
import {
  type Engine,
  getOverview,
  getSeries,
  listEngines,
  listPools,
  type Overview,
  type Pool,
  type SeriesAnswer,
} from '../../api/admin.ts'
import { getPauses, pauseQueue, resumeQueueOf } from '../../api/admin-money.ts'
import { toSearchAddress } from '../../api/filter.ts'
import { BarSeries } from '../../components/bar-series.tsx'
import { confirm } from '../../components/overlay/dialog.tsx'
import { Loaded, Skeleton } from '../../components/state.tsx'
import { type PlainColumn, PlainTable } from '../../components/table/plain-table.tsx'
import { Words } from '../../components/text.tsx'
import { hrefOf, navigate } from '../../routes.ts'
import { tell } from '../../state/deeds.ts'
import { zoneName } from '../../state/preferences.ts'
import { usePolled } from '../../state/resource.ts'
import { formatCount, formatSpan, formatTime, formatUsd, plural } from '../../text/format.ts'
import { toMarkedText } from '../../text/marks.ts'
import { EngineStateWord, engineOrder } from './engines/engines-page.tsx'
import { OperatorPage } from './operator-page.tsx'

const POOLS: readonly PlainColumn<Pool>[] = [
  { label: 'Pool', cell: ({ pool }) => <Words text={pool} /> },
  { label: 'Waiting', isNumber: true, cell: ({ queued }) => formatCount(queued) },
  { label: 'Running', isNumber: true, cell: ({ running }) => running },
  { label: 'Workers', isNumber: true, cell: ({ workers }) => workers },
  { label: 'Wanted', isNumber: true, cell: ({ wanted_workers: wanted }) => wanted },
  {
    label: 'Oldest waits',
    isNumber: true,
    cell: ({ oldest_wait_seconds: seconds }) => (seconds === 0 ? '–' : formatSpan(seconds * 1000)),
  },
]

export function OverviewPage() {
  const resource = usePolled('operator overview', async (signal) => {
    const [overview, { pools }, { engines }, series, { pauses }] = await Promise.all([
      getOverview(signal),
      listPools(signal),
      listEngines(signal),
      getSeries(signal),
      getPauses(signal),
    ])
    const paused = new Set(pauses.flatMap(({ scope, name }) => (scope === 'pool' && name !== null ? [name] : [])))
    return { overview, pools, engines, series, paused, isPaused: pauses.some(({ scope }) => scope === 'service') }
  })
  /** `name` null: the whole service. */
  async function setPause(name: string | null, isToPause: boolean): Promise<void> {
    const key = name === null ? ({ scope: 'service' } as const) : ({ scope: 'pool', name } as const)
    const isMeant =
      !isToPause ||
      (await confirm({
        title: name === null ? 'Pause the whole service?' : `Pause the pool ${toMarkedText(name)}?`,
        text: 'None of its jobs begins until it is resumed; what runs goes on, and new jobs wait. Whoever owns one that waits is told why.',
        deed: 'Pause',
        isDangerous: true,
      }))
    if (!isMeant) return
    await tell(async () => {
      await (isToPause ? pauseQueue(key, '') : resumeQueueOf(key))
      resource.reload()
    })
  }
  return (
    <OperatorPage here="overview" title="Operator">
      <Finder />
      <Loaded resource={resource} skeleton={<Skeleton rows={8} />}>
        {({ overview, pools, engines, series, paused, isPaused }) => {
          return (
            <>
              {isPaused && <p class="warning">The whole service is paused: no job begins.</p>}
              <p>
                <button type="button" class="button small" onClick={() => void setPause(null, !isPaused)}>
                  {isPaused ? 'Resume the service' : 'Pause the service…'}
                </button>
              </p>
              <Sick engines={engines} />
              <Now jobs={overview.jobs} streams={overview.streams} />
              <h2>The last hour</h2>
              <ServiceSeries answer={series} />
              <h2>Pools</h2>
              <PlainTable
                label="Pools"
                columns={[...POOLS, pauseColumn(paused, setPause)]}
                rows={pools}
                keyOf={({ pool }) => pool}
              />
              <h2>Engines</h2>
              <ul class="plain-list">
                {engines
                  .toSorted((a, b) => engineOrder(a.state) - engineOrder(b.state))
                  .slice(0, 20)
                  .map((engine) => (
                    <li key={engine.id}>
                      <EngineStateWord state={engine.state} />
                      <a href={hrefOf(`/operator/engines/${encodeURIComponent(engine.id)}`)}>
                        <Words text={engine.id} />
                      </a>
                      <span class="dim number">
                        {engine.running} of {engine.concurrency} busy
                      </span>
                    </li>
                  ))}
              </ul>
            </>
          )
        }}
      </Loaded>
    </OperatorPage>
  )
}

function Sick({ engines }: { readonly engines: readonly Engine[] }) {
  const sick = engines.filter(({ state }) => state === 'lost' || state === 'quarantined')
  if (sick.length === 0) return null
  return (
    <div class="failure">
      <p class="failure-message">{plural(sick.length, 'engine')} out of work</p>
      {sick.map(({ id, reason, state }) => (
        <p key={id}>
          <a href={hrefOf(`/operator/engines/${encodeURIComponent(id)}`)}>
            <Words text={id} />
          </a>{' '}
          <EngineStateWord state={state} /> <Words text={reason ?? ''} />
        </p>
      ))}
    </div>
  )
}

function Now({ jobs, streams }: Pick<Overview, 'jobs' | 'streams'>) {
  return (
    <div class="now-line">
      <Figure
        value={jobs.running + jobs.canceling}
        word="running"
        status="running"
        to="/operator/jobs?status=running,canceling"
      />
      <Figure value={jobs.queued} word="waiting" to="/operator/jobs?status=queued" />
      <Figure
        value={jobs.failed}
        word="failed"
        status={jobs.failed > 0 ? 'failed' : undefined}
        to="/operator/jobs?status=failed"
      />
      <Figure value={jobs.succeeded} word="succeeded" />
      <Figure value={streams} word="streams" />
    </div>
  )
}

interface FigureProps {
  readonly value: number
  readonly word: string
  readonly status?: string
  /** The jobs that are counted. */
  readonly to?: string
}

function Figure({ value, word, status, to }: FigureProps) {
  const inside = (
    <>
      <strong class="number" data-status={status}>
        {formatCount(value)}
      </strong>{' '}
      {word}
    </>
  )
  if (to === undefined) return <span class="figure">{inside}</span>
  return (
    <a class="figure" href={hrefOf(to)}>
      {inside}
    </a>
  )
}

function pauseColumn(
  paused: ReadonlySet<string>,
  setPause: (pool: string, isToPause: boolean) => Promise<void>,
): PlainColumn<Pool> {
  return {
    label: 'Taken',
    cell: ({ pool }) => (
      <span class="row">
        {paused.has(pool) && <span class="chip">paused</span>}
        <button type="button" class="button small" onClick={() => void setPause(pool, !paused.has(pool))}>
          {paused.has(pool) ? 'Resume' : 'Pause…'}
        </button>
      </span>
    ),
  }
}

/** A job of any account by its id, by what its customer calls it, or by a word. */
function Finder() {
  const field = useRef<HTMLInputElement>(null)
  function find(event: Event): void {
    event.preventDefault()
    const text = field.current?.value ?? ''
    if (text.trim() !== '') navigate(toSearchAddress(text, '/operator/jobs'))
  }
  return (
    <form class="filter-bar" role="search" aria-label="Jobs of all accounts" onSubmit={find}>
      <input
        ref={field}
        type="search"
        aria-label="Find a job of any account"
        placeholder="job id, order=4711, or a word"
      />
    </form>
  )
}

const SHOWN = [
  ['queued', 'Waiting, at most'],
  ['running', 'Running, at most'],
  ['succeeded', 'Succeeded'],
  ['failed', 'Failed'],
  ['spend', 'Spent'],
] as const

const asCount = (value: string) => formatCount(Number(value))

/** The last hour in bars: what waited and ran, what came to which end, what was spent; from when on the process has looked. */
export function ServiceSeries({ answer }: { readonly answer: SeriesAnswer }) {
  const from = Date.parse(answer.from)
  const keyAt = (index: number) => formatTime(from + index * answer.step_seconds * 1000, zoneName())
  // All of them are looked at together.
  const since = (answer.series[0]?.values ?? []).findIndex((value) => value !== null)
  return (
    <>
      {since !== 0 && (
        <p class="dim">
          {since === -1 ? 'Nothing is known yet' : `Known from ${keyAt(since)} on`}: each process of the service looks
          at all of it, and remembers what it saw since its own start.
        </p>
      )}
      <div class="service-series">
        {SHOWN.map(([name, label]) => {
          const values = answer.series.find((series) => series.name === name)?.values ?? []
          const isMoney = name === 'spend'
          const hasAny = values.some((value) => value !== null && Number(value) !== 0)
          if (isMoney && !hasAny) return null
          return (
            <section key={name} class="card" aria-label={label}>
              <h3>{label}</h3>
              <BarSeries
                label={label}
                unit="minutes"
                format={isMoney ? formatUsd : asCount}
                points={values.map((value, index) => ({ key: keyAt(index), usd: String(value ?? 0) }))}
              />
            </section>
          )
        })}
      </div>
    </>
  )
}
