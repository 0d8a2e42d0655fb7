/** What a month cost, or how long servers computed in it, by day and by what it was for. The totals are the service's own sums. */
import { getGpuUsage, getUsage, type UsageAnswer } from '../../api/account.ts'
import { BarSeries } from '../../components/bar-series.tsx'
import { Icon } from '../../components/icon.tsx'
import { EmptyState, Loaded, Skeleton } from '../../components/state.tsx'
import { FilterLinks } from '../../components/tabs/tabs.tsx'
import { Money, saveText } from '../../components/text.tsx'
import { hrefOf, query } from '../../routes.ts'
import { serverNow } from '../../state/clock.ts'
import { zoneName } from '../../state/preferences.ts'
import { useResource } from '../../state/resource.ts'
import { session } from '../../state/session.ts'
import { formatUsd } from '../../text/format.ts'
import { AccountTabs } from './account-page.tsx'
import { GPU_BY, GpuUsage } from './gpu-usage.tsx'
import { SumTable } from './sum-table.tsx'
import { type Month, monthBy, monthOf, toCsv, toMonth } from './usage-range.ts'

const BY = { model: 'Model', pool: 'Pool', endpoint: 'Endpoint', key: 'Key' } as const

/** One of these, by its name in the address; the first where that says none of them. */
export function toWay<Way extends string>(ways: Readonly<Record<Way, string>>, name: string | null): Way {
  const names = Object.keys(ways) as Way[]
  return names.find((way) => way === name) ?? names[0]
}

export function UsagePage() {
  const zone = zoneName()
  // Where there is one account, nothing costs anything.
  const hasMoney = session.value?.features.accounts === true
  const isGpu = !hasMoney || query.value.get('of') === 'gpu'
  const today = monthOf(serverNow(), zone)
  const month = toMonth(query.value.get('month') ?? today) ?? toMonth(today)
  if (month === null) return null
  const ways: Readonly<Record<string, string>> = isGpu ? GPU_BY : BY
  const by = toWay(ways, query.value.get('by'))
  const addressOf = (name: string, way: string | null, of = isGpu) =>
    `/account/usage?${new URLSearchParams({ month: name, ...(way !== null && { by: way }), ...(of && { of: 'gpu' }) })}`
  return (
    <section class="page usage">
      <h1>Usage</h1>
      {hasMoney && <AccountTabs here="usage" />}
      <div class="filter-bar">
        <a class="icon-button" href={hrefOf(addressOf(monthBy(month.name, -1), by))} aria-label="Month before">
          <Icon name="left" />
        </a>
        <strong class="number">{month.name}</strong>
        <a class="icon-button" href={hrefOf(addressOf(monthBy(month.name, 1), by))} aria-label="Month after">
          <Icon name="right" />
        </a>
        <span class="dim">days of {zone}</span>
        {hasMoney && (
          <FilterLinks
            label="Of"
            places={[
              [addressOf(month.name, null, false), 'Money'],
              [addressOf(month.name, null, true), 'GPU time'],
            ]}
            here={addressOf(month.name, null)}
          />
        )}
        <FilterLinks
          label="By"
          places={Object.entries(ways).map(([way, label]) => [addressOf(month.name, way), label])}
          here={addressOf(month.name, by)}
        />
      </div>
      {isGpu ? <OwnGpuUsage month={month} by={by} /> : <OwnUsage month={month} by={by} />}
    </section>
  )
}

interface OwnProps {
  readonly month: Month
  readonly by: string
}

const toAsked = ({ from, to }: Month, by: string) => new URLSearchParams({ from, to, tz: zoneName(), by })

function OwnUsage({ month, by }: OwnProps) {
  const asked = toAsked(month, by)
  const resource = useResource(`usage ${asked}`, (signal) => getUsage(asked, signal))
  return (
    <Loaded resource={resource} skeleton={<Skeleton rows={6} />}>
      {(usage) => <Usage usage={usage} by={BY[toWay(BY, by)]} name={month.name} />}
    </Loaded>
  )
}

function OwnGpuUsage({ month, by }: OwnProps) {
  const asked = toAsked(month, by)
  const resource = useResource(`gpu usage ${asked}`, (signal) => getGpuUsage(asked, signal))
  return (
    <Loaded resource={resource} skeleton={<Skeleton rows={6} />}>
      {(usage) => (
        <GpuUsage
          usage={usage}
          by={GPU_BY[toWay(GPU_BY, by)]}
          name={month.name}
          hrefOfKey={(key) => (by === 'job' ? hrefOf(`/jobs/${key}`) : null)}
        />
      )}
    </Loaded>
  )
}

interface UsageProps {
  readonly usage: UsageAnswer
  readonly by: string
  /** Of the time, as the saved table is called. */
  readonly name: string
  readonly empty?: string
  /** Where a row leads; null: nowhere. */
  readonly hrefOfRow?: (row: UsageAnswer['rows'][number]) => string | null
}

/** The total, the days and the parts of what was spent, of one account or of all. */
export function Usage({ usage, by, name, empty = 'Nothing was spent in this month', hrefOfRow }: UsageProps) {
  return (
    <>
      <p class="big-figure">
        <Money usd={usage.total_usd} />
      </p>
      <p class="dim">
        held now <Money usd={usage.held_usd} /> · refunds <Money usd={usage.refunds_usd} />{' '}
        <button
          type="button"
          class="button small"
          onClick={() =>
            saveText(
              `usage-${name}.csv`,
              toCsv([[by, 'count', 'usd'], ...usage.rows.map((row) => [rowName(row), String(row.count), row.usd])]),
              'text/csv',
            )
          }
        >
          <Icon name="down" /> CSV
        </button>
      </p>
      {usage.rows.length === 0 ? (
        <EmptyState title={empty} />
      ) : (
        <>
          <BarSeries label="Spent by day" points={usage.series.map(({ day, usd }) => ({ key: day, usd }))} />
          <SumTable
            heads={[by, 'Count', 'Spent']}
            rows={usage.rows.map((row) => ({
              id: `${row.kind} ${row.key}`,
              name: rowName(row),
              href: hrefOfRow?.(row) ?? null,
              count: row.count,
              value: Number(row.usd),
              shown: formatUsd(row.usd),
            }))}
          />
        </>
      )}
    </>
  )
}

function rowName({ label, key, kind }: UsageAnswer['rows'][number]): string {
  if (kind === 'rest') return 'all others'
  return label ?? key ?? (kind === 'job' ? 'jobs' : kind === 'call' ? 'calls' : 'not noted')
}
