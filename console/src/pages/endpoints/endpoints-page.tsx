/** The endpoints of the account, and where the file of a new one is dropped. */
import { useState } from 'preact/hooks'
import { ApiError } from '../../api/client.ts'
import { type Endpoint, listEndpoints } from '../../api/endpoints.ts'
import { FileDrop } from '../../components/files/file-buttons.tsx'
import { EmptyState, ErrorBox, Loaded, Skeleton, type StateLook, StatePill } from '../../components/state.tsx'
import { type PlainColumn, PlainTable } from '../../components/table/plain-table.tsx'
import { Ago, Words } from '../../components/text.tsx'
import { hrefOf, navigate, query, setQuery } from '../../routes.ts'
import { useResource } from '../../state/resource.ts'
import { session } from '../../state/session.ts'
import { openFile } from './publish/publish-state.ts'

const LOOKS: Readonly<Record<Endpoint['state'], StateLook>> = {
  ready: ['check', 'Ready', 'succeeded'],
  stopped: ['pause', 'Stopped', 'canceled'],
  blocked: ['warn', 'Blocked', 'failed'],
}

export function EndpointState({ state }: { readonly state: Endpoint['state'] }) {
  return <StatePill look={LOOKS[state]} />
}

/** What the tabs of an endpoint's page are given. */
export interface TabProps {
  readonly endpoint: Endpoint
  readonly onChanged: () => void
}

/** Whether the key of this session may do it. */
export function may(scope: 'endpoints:read' | 'endpoints:write' | 'endpoints:run'): boolean {
  return session.value?.scopes?.includes(scope) ?? true
}

export function NotAllowed({ scope }: { readonly scope: string }) {
  return (
    <p class="warning" role="status">
      The key of this session may not do this: it lacks the scope <code>{scope}</code>.
    </p>
  )
}

const COLUMNS: readonly PlainColumn<Endpoint>[] = [
  {
    label: 'Endpoint',
    cell: ({ name, title }) => (
      <>
        <a href={hrefOf(`/endpoints/${encodeURIComponent(name)}`)}>{name}</a>
        {title !== '' && title !== name && (
          <div class="dim">
            <Words text={title} />
          </div>
        )}
      </>
    ),
  },
  { label: 'Of', cell: ({ owner, name }) => ownerOf(owner, name) },
  { label: 'State', cell: ({ state }) => <EndpointState state={state} /> },
  { label: 'Version', cell: ({ current_version: version }) => version, isNumber: true },
  { label: 'Changed', cell: ({ updated_at: at }) => <Ago at={at} /> },
]

function ownerOf(owner: Endpoint['owner'], name: string): string {
  if (owner === 'other_account') return name.slice(0, name.indexOf('/'))
  return owner === 'service' ? 'the service' : 'the account'
}

export function EndpointsPage() {
  return (
    <section class="page endpoints">
      <h1>Endpoints</h1>
      {may('endpoints:write') && <WorkflowDrop label="Publish a workflow" onOpened={() => navigate('/publish')} />}
      {may('endpoints:read') ? <Lists /> : <NotAllowed scope="endpoints:read" />}
    </section>
  )
}

function Lists() {
  return (
    <>
      <List />
      {session.value?.features.accounts === true && <Shared />}
    </>
  )
}

/** Those that other accounts let this one call; nothing where there are none. */
function Shared() {
  const after = query.value.get('shared')
  const resource = useResource(`shared endpoints ${after}`, (signal) =>
    listEndpoints(after, { areShared: true, signal }),
  )
  const { endpoints = [], has_more: hasMore = false } = resource.data.value ?? {}
  if (resource.error.value !== null) return <ErrorBox error={resource.error.value} />
  if (endpoints.length === 0 && after === null) return null
  return (
    <section aria-label="Shared with you">
      <h2>Shared with you</h2>
      <PlainTable label="Shared with you" columns={COLUMNS} rows={endpoints} keyOf={({ name }) => name} />
      {hasMore && (
        <button type="button" class="button" onClick={() => setQuery({ shared: endpoints.at(-1)?.name ?? null })}>
          Further ones of others
        </button>
      )}
    </section>
  )
}

function List() {
  const after = query.value.get('after')
  const resource = useResource(`endpoints ${after}`, (signal) => listEndpoints(after, { signal }))
  return (
    <Loaded resource={resource} skeleton={<Skeleton rows={4} />}>
      {({ endpoints, has_more: hasMore }) => (
        <>
          {after === null && !endpoints.some(({ owner }) => owner === 'account') && (
            <EmptyState title="No endpoints yet">
              <p class="dim">
                An endpoint is a workflow behind an address: it has a name, inputs with types and bounds, versions, and
                a form to try it. Programs call it without knowing the graph.
              </p>
            </EmptyState>
          )}
          {endpoints.length > 0 && (
            <PlainTable label="Endpoints" columns={COLUMNS} rows={endpoints} keyOf={({ name }) => name} />
          )}
          {hasMore && (
            <button type="button" class="button" onClick={() => setQuery({ after: endpoints.at(-1)?.name ?? null })}>
              Further ones
            </button>
          )}
        </>
      )}
    </Loaded>
  )
}

interface WorkflowDropProps {
  readonly label: string
  /** Called when the service has proposed inputs for it. */
  readonly onOpened: () => void
  /** The endpoint that it becomes a version of; left out: a new one. */
  readonly name?: string
}

export function WorkflowDrop({ label, onOpened, name }: WorkflowDropProps) {
  const [problem, setProblem] = useState<ApiError | null>(null)
  async function take(file: File): Promise<void> {
    setProblem(null)
    try {
      await openFile(file, name ?? null)
      onOpened()
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      setProblem(error)
    }
  }
  return (
    <>
      <FileDrop
        label={label}
        hint="or drop it here: JSON of the editor or of the API, or a picture, video or sound that ComfyUI saved"
        accept=".json,image/png,image/webp,audio/flac,video/mp4,application/json"
        onFiles={([file]) => void take(file)}
      />
      {problem !== null && <ErrorBox error={problem} />}
    </>
  )
}
