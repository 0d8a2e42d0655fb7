/** The calls of an endpoint, newest first, each with what it was called with. */
import { stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import { type Endpoint, getRun, listRuns, type RunRow } from '../../api/endpoints.ts'
import { Thumb } from '../../components/media/media.tsx'
import { EmptyState, StatusPill } from '../../components/state.tsx'
import { LoadedTable, type PlainColumn } from '../../components/table/plain-table.tsx'
import { Ago, Duration, Words } from '../../components/text.tsx'
import { hrefOf, query, setQuery } from '../../routes.ts'
import { useResource } from '../../state/resource.ts'
import { may, NotAllowed } from './endpoints-page.tsx'

export function RunsTab({ endpoint }: { readonly endpoint: Endpoint }) {
  return may('endpoints:run') ? <Runs name={endpoint.name} /> : <NotAllowed scope="endpoints:run" />
}

function Runs({ name }: { readonly name: string }) {
  const cursor = query.value.get('cursor')
  const resource = useResource(`runs ${name} ${cursor}`, (signal) => listRuns(name, cursor, signal))
  const next = resource.data.value?.next_cursor
  const here = `/endpoints/${encodeURIComponent(name)}`
  const columns: readonly PlainColumn<RunRow>[] = [
    { label: 'Result', cell: ({ outputs }) => <FirstOutput outputs={outputs} /> },
    { label: 'State', cell: ({ status }) => <StatusPill status={status} /> },
    { label: 'Inputs', cell: ({ id }) => <Inputs name={name} id={id} /> },
    { label: 'Version', cell: ({ endpoint }) => endpoint?.version ?? '', isNumber: true },
    { label: 'Called', cell: ({ created_at: at }) => <Ago at={at} /> },
    { label: 'Took', cell: ({ started_at: from, completed_at: to }) => <Duration from={from} to={to} /> },
    {
      label: 'More',
      cell: ({ id, endpoint }) => (
        <span class="row">
          <a href={hrefOf(`/jobs/${encodeURIComponent(id)}`)}>Job</a>
          <a
            href={hrefOf(`${here}?from=${encodeURIComponent(id)}${endpoint ? `&version=${endpoint.version}` : ''}#try`)}
          >
            Again
          </a>
        </span>
      ),
    },
  ]
  return (
    <>
      <LoadedTable
        label="Runs"
        columns={columns}
        resource={resource}
        rowsOf={({ runs }) => runs}
        keyOf={({ id }) => id}
        empty={
          <EmptyState title="Nobody called it yet">
            <p class="dim">Try it, or call it from a program: each call is a run here.</p>
          </EmptyState>
        }
      />
      {next !== undefined && (
        <button type="button" class="button" onClick={() => setQuery({ cursor: next })}>
          Older
        </button>
      )}
    </>
  )
}

function FirstOutput({ outputs: [first] }: Pick<RunRow, 'outputs'>) {
  if (first === undefined) return null
  return (
    <span class="history-tile">
      <Thumb assetId={first.id} type={first.type} alt="" width={64} />
    </span>
  )
}

/** The list itself is without them. */
function Inputs({ name, id }: { readonly name: string; readonly id: string }) {
  const { data } = useResource(`run ${name} ${id}`, (signal) => getRun(name, id, signal))
  if (data.value === null || data.value.inputs === null) return null
  const pairs = Object.entries(data.value.inputs).map(
    ([input, value]) => `${input}: ${typeof value === 'string' ? value : stringifyLosslessJson(value)}`,
  )
  return <Words text={pairs.join(', ').slice(0, 200)} />
}
