/** Who used the service: what was spent in some days, by account, pool, model and the rest, with a table to save. */
import { getServiceUsage } from '../../api/admin-money.ts'
import { Loaded, Skeleton } from '../../components/state.tsx'
import { FilterLinks } from '../../components/tabs/tabs.tsx'
import { hrefOf, query } from '../../routes.ts'
import { serverNow } from '../../state/clock.ts'
import { zoneName } from '../../state/preferences.ts'
import { useResource } from '../../state/resource.ts'
import { Usage } from '../account/usage-page.tsx'
import { daysOf, USAGE_TIMES, type UsageTime } from '../account/usage-range.ts'
import { OperatorPage } from './operator-page.tsx'

const BY = {
  account: 'Account',
  pool: 'Pool',
  model: 'Model',
  endpoint: 'Endpoint',
  key: 'Key',
  day: 'Day',
} as const
type By = keyof typeof BY

const TIMES: Readonly<Record<UsageTime, string>> = {
  today: 'Today',
  yesterday: 'Yesterday',
  '7d': '7 days',
  '30d': '30 days',
  month: 'This month',
}

export function OperatorUsagePage() {
  const zone = zoneName()
  const time = USAGE_TIMES.find((name) => name === query.value.get('time')) ?? 'yesterday'
  const by = (Object.keys(BY) as By[]).find((name) => name === query.value.get('by')) ?? 'account'
  const account = query.value.get('account') ?? ''
  const days = daysOf(time, serverNow(), zone)
  const asked = new URLSearchParams({ from: days.from, to: days.to, tz: zone, by, ...(account !== '' && { account }) })
  const resource = useResource(`operator usage ${asked}`, (signal) => getServiceUsage(asked, signal))
  const addressOf = (one: UsageTime, way: By, whose = account) =>
    `/operator/usage?${new URLSearchParams({ time: one, by: way, ...(whose !== '' && { account: whose }) })}`
  return (
    <OperatorPage here="usage" title="Usage">
      <div class="filter-bar">
        <FilterLinks
          label="Time"
          places={USAGE_TIMES.map((name) => [addressOf(name, by), TIMES[name]])}
          here={addressOf(time, by)}
        />
        <FilterLinks
          label="By"
          places={(Object.entries(BY) as [By, string][]).map(([way, label]) => [addressOf(time, way), label])}
          here={addressOf(time, by)}
        />
        {account !== '' && (
          <a class="chip" href={hrefOf(addressOf(time, by, ''))}>
            of {account}: show all
          </a>
        )}
        <span class="dim">
          {days.from} until the end of {days.last}, days of {zone}
        </span>
      </div>
      <Loaded resource={resource} skeleton={<Skeleton rows={6} />}>
        {(usage) => (
          <Usage
            usage={usage}
            by={BY[by]}
            name={days.from}
            empty="Nothing was spent in this time"
            hrefOfRow={({ key }) =>
              by === 'account' && key !== null ? hrefOf(`/operator/accounts/${encodeURIComponent(key)}`) : null
            }
          />
        )}
      </Loaded>
    </OperatorPage>
  )
}
