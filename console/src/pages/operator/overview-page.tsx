/** The service at a glance: what is red comes first, then the queue by pool, then the engines. */
import { getOverview, getSeries, listEngines, listPools, type Pool, type SeriesAnswer } from '../../api/admin.ts'
import { BarSeries } from '../../components/bar-series.tsx'
import { Loaded, Skeleton } from '../../components/state.tsx'
import { type PlainColumn, PlainTable } from '../../components/table/plain-table.tsx'
import { Words } from '../../components/text.tsx'
import { hrefOf } from '../../routes.ts'
import { zoneName } from '../../state/preferences.ts'
import { usePolled } from '../../state/resource.ts'
import { formatCount, formatSpan, formatTime, formatUsd, plural } from '../../text/format.ts'
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
    const [overview, { pools }, { engines }, series] = await Promise.all([
      getOverview(signal),
      listPools(signal),
      listEngines(signal),
      getSeries(signal),
    ])
    return { overview, pools, engines, series }
  })
  return (
    <OperatorPage here="overview" title="Operator">
      <Loaded resource={resource} skeleton={<Skeleton rows={8} />}>
        {({ overview, pools, engines, series }) => {
          const sick = engines.filter(({ state }) => state === 'lost' || state === 'quarantined')
          return (
            <>
              {sick.length > 0 && (
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
              )}
              <div class="now-line">
                <Figure value={overview.jobs.running + overview.jobs.canceling} word="running" status="running" />
                <Figure value={overview.jobs.queued} word="waiting" />
                <Figure
                  value={overview.jobs.failed}
                  word="failed"
                  status={overview.jobs.failed > 0 ? 'failed' : undefined}
                />
                <Figure value={overview.jobs.succeeded} word="succeeded" />
                <Figure value={overview.streams} word="streams" />
              </div>
              <h2>The last hour</h2>
              <ServiceSeries answer={series} />
              <h2>Pools</h2>
              <PlainTable label="Pools" columns={POOLS} rows={pools} keyOf={({ pool }) => pool} />
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

function Figure({ value, word, status }: { readonly value: number; readonly word: string; readonly status?: string }) {
  return (
    <span class="figure">
      <strong class="number" data-status={status}>
        {formatCount(value)}
      </strong>{' '}
      {word}
    </span>
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
