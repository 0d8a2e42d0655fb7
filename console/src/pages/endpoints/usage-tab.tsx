/** How an endpoint was used in this month, by day or by version, and how much of its limits that is. */
import { type Endpoint, getUsage, type UsageRow } from '../../api/endpoints.ts'
import { BarSeries } from '../../components/bar-series.tsx'
import { EmptyState, Loaded, Skeleton } from '../../components/state.tsx'
import { type PlainColumn, PlainTable } from '../../components/table/plain-table.tsx'
import { FilterLinks } from '../../components/tabs/tabs.tsx'
import { Money } from '../../components/text.tsx'
import { query } from '../../routes.ts'
import { zoneName } from '../../state/preferences.ts'
import { useResource } from '../../state/resource.ts'
import { formatCount } from '../../text/format.ts'
import { PERIOD_WORDS } from './limit-fields.tsx'

const BY = { day: 'Day', version: 'Version' } as const
type By = keyof typeof BY
// Of other accounts the owner is told how many runs there were, and what they cost.
const OF = { own: 'This account', others: 'Other accounts' } as const

export function UsageTab({ endpoint: { name, callers } }: { readonly endpoint: Endpoint }) {
  const by: By = query.value.get('by') === 'version' ? 'version' : 'day'
  const of = query.value.get('of') === 'others' ? 'others' : 'own'
  const asked = new URLSearchParams({ by, of, tz: zoneName() })
  const resource = useResource(`usage of ${name} ${asked}`, (signal) => getUsage(name, asked, signal))
  const addressOf = (way: By, whose: string) => `/endpoints/${encodeURIComponent(name)}?by=${way}&of=${whose}#usage`
  return (
    <>
      <div class="filter-bar">
        <span class="dim">this month</span>
        <FilterLinks
          label="By"
          places={(Object.entries(BY) as [By, string][]).map(([way, label]) => [addressOf(way, of), label])}
          here={addressOf(by, of)}
        />
        {(callers.length > 0 || of === 'others') && (
          <FilterLinks
            label="Of"
            places={Object.entries(OF).map(([whose, label]) => [addressOf(by, whose), label])}
            here={addressOf(by, of)}
          />
        )}
      </div>
      <Loaded resource={resource} skeleton={<Skeleton rows={6} />}>
        {(usage) => (
          <>
            <Limits limits={usage.limits} />
            {usage.total.runs === 0 && Number(usage.total.usd) === 0 ? (
              <EmptyState title="Nobody called it in this month" />
            ) : (
              <>
                {by === 'day' && (
                  <BarSeries
                    label="Spent by day"
                    points={usage.rows.map(({ key, usd }) => ({ key: key ?? '', usd }))}
                  />
                )}
                <PlainTable
                  label="Usage"
                  columns={columnsOf(BY[by])}
                  rows={[...usage.rows.filter(isUsed), { ...usage.total, key: 'in all' }]}
                  keyOf={({ key }) => key ?? ''}
                />
              </>
            )}
          </>
        )}
      </Loaded>
    </>
  )
}

function isUsed({ runs, usd }: UsageRow): boolean {
  return runs > 0 || Number(usd) !== 0
}

function columnsOf(label: string): readonly PlainColumn<UsageRow>[] {
  const count = (name: string, of: (row: UsageRow) => number): PlainColumn<UsageRow> => ({
    label: name,
    cell: (row) => formatCount(of(row)),
    isNumber: true,
  })
  return [
    { label, cell: ({ key }) => key ?? 'not noted' },
    count('Runs', ({ runs }) => runs),
    count('Succeeded', ({ succeeded }) => succeeded),
    count('Failed', ({ failed }) => failed),
    count('Canceled', ({ canceled, expired }) => canceled + expired),
    count('Under way', ({ queued, running }) => queued + running),
    { label: 'Seconds', cell: ({ seconds }) => seconds.toFixed(1), isNumber: true },
    { label: 'Spent', cell: ({ usd }) => <Money usd={usd} />, isNumber: true },
  ]
}

type Used = Awaited<ReturnType<typeof getUsage>>['limits']

function Limits({ limits: { in_flight: inFlight, runs, spend_usd: spend } }: { readonly limits: Used }) {
  const lines = [
    ...(inFlight === null ? [] : [`${inFlight.now} of ${inFlight.maximum} runs at a time`]),
    ...Object.entries(runs).map(([period, { now, maximum }]) => `${now} of ${maximum} runs ${PERIOD_WORDS[period]}`),
    ...Object.entries(spend).map(([period, { now, maximum }]) => `$${now} of $${maximum} ${PERIOD_WORDS[period]}`),
  ]
  if (lines.length === 0) return null
  return (
    <ul class="plain-list" aria-label="Limits">
      {lines.map((line) => (
        <li key={line}>{line}</li>
      ))}
    </ul>
  )
}
