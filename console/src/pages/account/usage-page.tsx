/** What a month cost, by day and by what it was for. The total is the ledger's own sum. */
import { getUsage, type UsageAnswer } from '../../api/account.ts'
import { BarSeries } from '../../components/bar-series.tsx'
import { Icon } from '../../components/icon.tsx'
import { EmptyState, Loaded, Skeleton } from '../../components/state.tsx'
import { FilterLinks } from '../../components/tabs/tabs.tsx'
import { Money, saveText, Words } from '../../components/text.tsx'
import { hrefOf, query } from '../../routes.ts'
import { serverNow } from '../../state/clock.ts'
import { zoneName } from '../../state/preferences.ts'
import { useResource } from '../../state/resource.ts'
import { formatCount } from '../../text/format.ts'
import { AccountTabs } from './account-page.tsx'
import { monthBy, monthOf, toCsv, toMonth } from './usage-range.ts'

const BY = { model: 'Model', pool: 'Pool', endpoint: 'Endpoint', key: 'Key' } as const
type By = keyof typeof BY

export function UsagePage() {
  const zone = zoneName()
  const today = monthOf(serverNow(), zone)
  const month = toMonth(query.value.get('month') ?? today) ?? toMonth(today)
  const by = (query.value.get('by') ?? 'model') in BY ? ((query.value.get('by') ?? 'model') as By) : 'model'
  const asked = new URLSearchParams({ from: month?.from ?? '', to: month?.to ?? '', tz: zone, by })
  const resource = useResource(`usage ${asked}`, (signal) => getUsage(asked, signal))
  if (month === null) return null
  const addressOf = (name: string, way: By) => `/account/usage?month=${name}&by=${way}`
  return (
    <section class="page usage">
      <h1>Usage</h1>
      <AccountTabs here="usage" />
      <div class="filter-bar">
        <a class="icon-button" href={hrefOf(addressOf(monthBy(month.name, -1), by))} aria-label="Month before">
          <Icon name="left" />
        </a>
        <strong class="number">{month.name}</strong>
        <a class="icon-button" href={hrefOf(addressOf(monthBy(month.name, 1), by))} aria-label="Month after">
          <Icon name="right" />
        </a>
        <span class="dim">days of {zone}</span>
        <FilterLinks
          label="By"
          places={(Object.entries(BY) as [By, string][]).map(([way, label]) => [addressOf(month.name, way), label])}
          here={addressOf(month.name, by)}
        />
      </div>
      <Loaded resource={resource} skeleton={<Skeleton rows={6} />}>
        {(usage) => <Usage usage={usage} by={BY[by]} name={month.name} />}
      </Loaded>
    </section>
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
  const most = Math.max(0.000001, ...usage.rows.map(({ usd }) => Number(usd)))
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
          <table class="plain-table">
            <thead>
              <tr>
                <th scope="col">{by}</th>
                <th scope="col" class="right">
                  Count
                </th>
                <th scope="col" class="right">
                  Spent
                </th>
                <th scope="col">
                  <span class="unseen">Share</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {usage.rows.map((row) => (
                <tr key={`${row.kind} ${row.key}`}>
                  <td>
                    <RowName text={rowName(row)} href={hrefOfRow?.(row) ?? null} />
                  </td>
                  <td class="right number">{formatCount(row.count)}</td>
                  <td class="right">
                    <Money usd={row.usd} />
                  </td>
                  <td class="share">
                    <span class="share-bar" style={{ transform: `scaleX(${Math.max(0, Number(row.usd)) / most})` }} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
    </>
  )
}

function RowName({ text, href }: { readonly text: string; readonly href: string | null }) {
  if (href === null) return <Words text={text} />
  return (
    <a href={href}>
      <Words text={text} />
    </a>
  )
}

function rowName({ label, key, kind }: UsageAnswer['rows'][number]): string {
  if (kind === 'rest') return 'all others'
  return label ?? key ?? (kind === 'job' ? 'jobs' : kind === 'call' ? 'calls' : 'not noted')
}
