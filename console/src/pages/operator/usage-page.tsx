/** Who used the service: what was spent in some days, or how long servers computed, by account, pool and the rest, with a table to save. */
import { getServiceGpuUsage, getServiceUsage } from '../../api/admin-money.ts'
import { Loaded, Skeleton } from '../../components/state.tsx'
import { FilterLinks } from '../../components/tabs/tabs.tsx'
import { hrefOf, query } from '../../routes.ts'
import { serverNow } from '../../state/clock.ts'
import { zoneName } from '../../state/preferences.ts'
import { useResource } from '../../state/resource.ts'
import { GPU_BY, GpuUsage } from '../account/gpu-usage.tsx'
import { toWay, Usage } from '../account/usage-page.tsx'
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
const ALL_GPU_BY = { account: 'Account', ...GPU_BY, day: 'Day' } as const

const TIMES: Readonly<Record<UsageTime, string>> = {
  today: 'Today',
  yesterday: 'Yesterday',
  '7d': '7 days',
  '30d': '30 days',
  month: 'This month',
}

export function OperatorUsagePage() {
  const zone = zoneName()
  const isGpu = query.value.get('of') === 'gpu'
  const time = USAGE_TIMES.find((name) => name === query.value.get('time')) ?? 'yesterday'
  const ways: Readonly<Record<string, string>> = isGpu ? ALL_GPU_BY : BY
  const by = toWay(ways, query.value.get('by'))
  const account = query.value.get('account') ?? ''
  const days = daysOf(time, serverNow(), zone)
  const asked = new URLSearchParams({ from: days.from, to: days.to, tz: zone, by, ...(account !== '' && { account }) })
  const addressOf = (one: UsageTime, way: string | null, whose = account, of = isGpu) => {
    const more = { ...(way !== null && { by: way }), ...(whose !== '' && { account: whose }), ...(of && { of: 'gpu' }) }
    return `/operator/usage?${new URLSearchParams({ time: one, ...more })}`
  }
  return (
    <OperatorPage here="usage" title="Usage">
      <div class="filter-bar">
        <FilterLinks
          label="Of"
          places={[
            [addressOf(time, null, account, false), 'Money'],
            [addressOf(time, null, account, true), 'GPU time'],
          ]}
          here={addressOf(time, null)}
        />
        <FilterLinks
          label="Time"
          places={USAGE_TIMES.map((name) => [addressOf(name, by), TIMES[name]])}
          here={addressOf(time, by)}
        />
        <FilterLinks
          label="By"
          places={Object.entries(ways).map(([way, label]) => [addressOf(time, way), label])}
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
      {isGpu ? (
        <AllGpuUsage asked={asked} by={by} name={days.from} />
      ) : (
        <AllUsage asked={asked} by={by} name={days.from} />
      )}
    </OperatorPage>
  )
}

interface AllProps {
  readonly asked: URLSearchParams
  readonly by: string
  readonly name: string
}

const toAccount = (by: string, key: string | null) =>
  by === 'account' && key !== null ? hrefOf(`/operator/accounts/${encodeURIComponent(key)}`) : null

function AllUsage({ asked, by, name }: AllProps) {
  const resource = useResource(`operator usage ${asked}`, (signal) => getServiceUsage(asked, signal))
  return (
    <Loaded resource={resource} skeleton={<Skeleton rows={6} />}>
      {(usage) => (
        <Usage
          usage={usage}
          by={BY[toWay(BY, by)]}
          name={name}
          empty="Nothing was spent in this time"
          hrefOfRow={({ key }) => toAccount(by, key)}
        />
      )}
    </Loaded>
  )
}

function AllGpuUsage({ asked, by, name }: AllProps) {
  const resource = useResource(`operator gpu usage ${asked}`, (signal) => getServiceGpuUsage(asked, signal))
  const toPlace = (key: string) => {
    if (by === 'job') return hrefOf(`/operator/jobs/${key}`)
    return by === 'server' ? hrefOf(`/operator/engines/${encodeURIComponent(key)}`) : toAccount(by, key)
  }
  return (
    <Loaded resource={resource} skeleton={<Skeleton rows={6} />}>
      {(usage) => <GpuUsage usage={usage} by={ALL_GPU_BY[toWay(ALL_GPU_BY, by)]} name={name} hrefOfKey={toPlace} />}
    </Loaded>
  )
}
