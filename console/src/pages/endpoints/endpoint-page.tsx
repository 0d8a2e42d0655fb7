/** One endpoint: to try, its runs, its versions, how programs call it, what holds for all versions. */
import { type Endpoint, getEndpoint, getVersion } from '../../api/endpoints.ts'
import { Loaded, Skeleton } from '../../components/state.tsx'
import { TabPanel, Tabs } from '../../components/tabs/tabs.tsx'
import { Words } from '../../components/text.tsx'
import { hash, hrefOf, query, setHash } from '../../routes.ts'
import { useResource } from '../../state/resource.ts'
import { CodeTab } from './code-tab.tsx'
import { EndpointState, may, NotAllowed, type TabProps } from './endpoints-page.tsx'
import { RunsTab } from './runs-tab.tsx'
import { SettingsTab } from './settings-tab.tsx'
import { TryTab } from './try-tab.tsx'
import { VersionsTab } from './versions-tab.tsx'

const TABS = { try: 'Try', runs: 'Runs', versions: 'Versions', code: 'Code', settings: 'Settings' } as const
type TabName = keyof typeof TABS

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
  const { name, title, description, state, missing } = endpoint
  const tab = (Object.keys(TABS) as TabName[]).find((each) => each === hash.value) ?? 'try'
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
        tabs={Object.entries(TABS).map(([each, label]) => ({ name: each as TabName, label }))}
      />
      <TabPanel name={tab}>
        {(tab === 'try' || tab === 'code') && <OfVersion endpoint={endpoint} tab={tab} />}
        {tab === 'runs' && <RunsTab endpoint={endpoint} />}
        {tab === 'versions' && <VersionsTab endpoint={endpoint} onChanged={onChanged} />}
        {tab === 'settings' && <SettingsTab key={endpoint.revision} endpoint={endpoint} onChanged={onChanged} />}
      </TabPanel>
    </>
  )
}

/** What is told of one version: the one in the address, else the current one. */
function OfVersion({ endpoint, tab }: { readonly endpoint: Endpoint; readonly tab: 'try' | 'code' }) {
  const { name, current_version: current } = endpoint
  const wanted = query.value.get('version') ?? String(current)
  const resource = useResource(`version ${name} ${wanted}`, (signal) => getVersion(name, wanted, signal))
  return (
    <Loaded resource={resource} skeleton={<Skeleton rows={6} />}>
      {(version) =>
        tab === 'try' ? (
          <TryTab key={version.version} endpoint={endpoint} version={version} />
        ) : (
          <CodeTab endpoint={endpoint} version={version} />
        )
      }
    </Loaded>
  )
}
