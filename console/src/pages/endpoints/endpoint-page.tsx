/** One endpoint: to try, its runs, its versions, how programs call it, what holds for all versions. */
import { type Endpoint, getEndpoint, getVersion } from '../../api/endpoints.ts'
import { Loaded, Skeleton } from '../../components/state.tsx'
import { TabPanel, Tabs } from '../../components/tabs/tabs.tsx'
import { Money, Words } from '../../components/text.tsx'
import { hash, hrefOf, query, setHash } from '../../routes.ts'
import { useResource } from '../../state/resource.ts'
import { CodeTab } from './code-tab.tsx'
import { EndpointState, may, NotAllowed, type TabProps } from './endpoints-page.tsx'
import { RunsTab } from './runs-tab.tsx'
import { SettingsTab } from './settings-tab.tsx'
import { ShareTab } from './share-tab.tsx'
import { TryTab } from './try-tab.tsx'
import { UsageTab } from './usage-tab.tsx'
import { VersionsTab } from './versions-tab.tsx'

const TABS = {
  ...{ try: 'Try', runs: 'Runs', usage: 'Usage', versions: 'Versions', code: 'Code' },
  ...{ share: 'Share', settings: 'Settings' },
} as const
type TabName = keyof typeof TABS
// Of what another account lets this one call.
const CALLERS_TABS: readonly TabName[] = ['try', 'runs', 'code']

export function EndpointPage({ name = '' }: Readonly<Record<string, string>>) {
  return (
    <section class="page endpoint">
      <a class="dim back" href={hrefOf('/endpoints')}>
        ← Endpoints
      </a>
      {may('endpoints:read') ? <Asked key={name} name={name} /> : <Refused name={name} />}
    </section>
  )
}

function Refused({ name }: { readonly name: string }) {
  return (
    <>
      <h1>{name}</h1>
      <NotAllowed scope="endpoints:read" />
    </>
  )
}

function Asked({ name }: { readonly name: string }) {
  const resource = useResource(`endpoint ${name}`, (signal) => getEndpoint(name, signal))
  return (
    <>
      {resource.data.value === null && <h1>{name}</h1>}
      <Loaded resource={resource} skeleton={<Skeleton rows={6} />}>
        {(endpoint) => <OneEndpoint endpoint={endpoint} onChanged={resource.reload} />}
      </Loaded>
    </>
  )
}

function OneEndpoint({ endpoint, onChanged }: TabProps) {
  const { name, title, description, owner, state, missing } = endpoint
  const tabs = (Object.keys(TABS) as TabName[]).filter((each) => isFor(owner, each))
  const tab = tabs.find((each) => each === hash.value) ?? 'try'
  const gone = [
    ...(missing?.classes.map(({ class_type: classType }) => classType) ?? []),
    ...(missing?.weights.map(({ name: weight }) => weight) ?? []),
  ]
  return (
    <>
      <div class="page-head">
        <h1>
          <Words text={title === '' ? name : title} />
        </h1>
        <EndpointState state={state} />
      </div>
      <p class="dim">
        <code>{name}</code>, version {endpoint.current_version}
        <Price price={endpoint.price} />
        {owner === 'service' && ', of the service: publish one of this name to have your own in its place'}
      </p>
      {description !== '' && (
        <p>
          <Words text={description} />
        </p>
      )}
      {gone.length > 0 && (
        <p class="warning" role="status">
          No engine here has <Words text={gone.join(', ')} />.
        </p>
      )}
      <Tabs
        label="Parts of this endpoint"
        chosen={tab}
        onChoose={setHash}
        tabs={tabs.map((each) => ({ name: each, label: TABS[each] }))}
      />
      <TabPanel name={tab}>
        {tab === 'try' && <TryVersion endpoint={endpoint} />}
        {tab === 'code' && <CodeTab endpoint={endpoint} />}
        {tab === 'runs' && <RunsTab endpoint={endpoint} />}
        {tab === 'usage' && <UsageTab endpoint={endpoint} />}
        {tab === 'versions' && <VersionsTab endpoint={endpoint} onChanged={onChanged} />}
        {tab === 'share' && <ShareTab endpoint={endpoint} />}
        {tab === 'settings' && <SettingsTab key={endpoint.revision} endpoint={endpoint} onChanged={onChanged} />}
      </TabPanel>
    </>
  )
}

function isFor(owner: Endpoint['owner'], tab: TabName): boolean {
  if (owner === 'other_account') return CALLERS_TABS.includes(tab)
  return tab !== 'settings' || owner === 'account'
}

/** Nothing where the price of the pool holds. */
function Price({ price }: Pick<Endpoint, 'price'>) {
  if (price === null) return null
  if (price.kind === 'free') return <>, free</>
  return (
    <>
      , <Money usd={price.usd ?? '0'} /> {price.kind === 'per_run' ? 'a run' : `a second, at most ${price.max_seconds}`}
    </>
  )
}

/** The version in the address, else the current one. */
function TryVersion({ endpoint }: { readonly endpoint: Endpoint }) {
  const { name, current_version: current } = endpoint
  const wanted = query.value.get('version') ?? String(current)
  const resource = useResource(`version ${name} ${wanted}`, (signal) => getVersion(name, wanted, signal))
  return (
    <Loaded resource={resource} skeleton={<Skeleton rows={6} />}>
      {(version) => <TryTab key={version.version} endpoint={endpoint} version={version} />}
    </Loaded>
  )
}
