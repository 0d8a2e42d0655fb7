/** What was asked of many jobs in the last days, how far each is, and what became of every job. */
import {
  type BulkAction,
  type BulkItem,
  type BulkScope,
  bulkZip,
  getBulk,
  listBulk,
  listBulkItems,
} from '../../api/bulk.ts'
import { BulkLine, bulkName, bulkOutcome, bulkPage } from '../../components/many/many-strip.tsx'
import { EmptyState, Loaded, Skeleton } from '../../components/state.tsx'
import { LoadedTable, type PlainColumn } from '../../components/table/plain-table.tsx'
import { Ago, Moment, shortId, Words } from '../../components/text.tsx'
import { BASE, hrefOf, query, setQuery } from '../../routes.ts'
import { usePolled, useResource } from '../../state/resource.ts'
import { formatCount } from '../../text/format.ts'

const STATES: Readonly<Record<BulkAction['state'], string>> = { working: 'at work', done: 'done', stopped: 'stopped' }

/** All of the last week, the newest first. */
export function BulkList({ scope }: { readonly scope: BulkScope }) {
  const resource = usePolled(`bulk ${scope}`, (signal) => listBulk(scope, signal))
  const columns: readonly PlainColumn<BulkAction>[] = [
    { label: 'What', cell: (action) => <a href={hrefOf(bulkPage(scope, action.id))}>{bulkName(action)}</a> },
    { label: 'State', cell: ({ state }) => STATES[state] },
    { label: 'Done', isNumber: true, cell: ({ done }) => formatCount(done) },
    { label: 'Left out', isNumber: true, cell: ({ skipped }) => formatCount(skipped) },
    { label: 'Refused', isNumber: true, cell: ({ refused }) => formatCount(refused) },
    { label: 'Asked for', cell: ({ created_at: at }) => <Ago at={at} /> },
  ]
  return (
    <LoadedTable
      resource={resource}
      rowsOf={({ bulk_actions: actions }) => actions}
      label="What was asked of many jobs"
      columns={columns}
      keyOf={({ id }) => id}
      empty={
        <EmptyState title="Nothing was asked of many jobs">
          <p class="dim">
            Select jobs in the list, or all that match a filter, to cancel, run again, move or fetch them.
          </p>
        </EmptyState>
      }
    />
  )
}

export function BulkListPage() {
  return (
    <section class="page">
      <a class="dim back" href={hrefOf('/jobs')}>
        ← Jobs
      </a>
      <h1>Many jobs</h1>
      <BulkList scope="own" />
    </section>
  )
}

export function BulkPage({ id = '' }: Readonly<Record<string, string>>) {
  return (
    <section class="page">
      <a class="dim back" href={hrefOf('/bulk')}>
        ← Many jobs
      </a>
      <OneBulk scope="own" id={id} />
    </section>
  )
}

/** One of them with its jobs. */
export function OneBulk({ scope, id }: { readonly scope: BulkScope; readonly id: string }) {
  const resource = usePolled(`bulk ${scope} ${id}`, (signal) => getBulk(scope, id, signal))
  return (
    <>
      {resource.data.value === null && <h1 class="unseen">Many jobs</h1>}
      <Loaded resource={resource} skeleton={<Skeleton rows={8} />}>
        {(action) => (
          <>
            <h1>{bulkName(action)}</h1>
            {action.state === 'working' ? <BulkLine scope={scope} action={action} /> : <p>{bulkOutcome(action)}.</p>}
            {action.state === 'stopped' && action.reason !== null && (
              <p class="warning">
                Stopped: <Words text={action.reason.message} />
              </p>
            )}
            <p class="dim">
              asked for <Moment at={action.created_at} />, kept until <Moment at={action.expires_at} />
              {action.filter !== null && (
                <>
                  {' · '}
                  <Words
                    text={Object.entries(action.filter)
                      .map(([word, value]) => `${word}=${value}`)
                      .join(' ')}
                  />
                </>
              )}
            </p>
            {scope === 'own' && action.action === 'download' && (
              <p class="row">
                {Array.from({ length: action.parts }, (_, index) => (
                  <a key={index} class="button" href={bulkZip(BASE, id, index + 1)} download>
                    Part {index + 1}
                  </a>
                ))}
              </p>
            )}
            <Items scope={scope} action={action} />
          </>
        )}
      </Loaded>
    </>
  )
}

const OUTCOMES = ['refused', 'skipped', 'waiting', 'done'] as const

function Items({ scope, action }: { readonly scope: BulkScope; readonly action: BulkAction }) {
  const outcome = query.value.get('outcome')
  const after = Number(query.value.get('after') ?? 0)
  const { id, done, skipped, refused } = action
  const resource = useResource(`bulk items ${scope} ${id} ${outcome} ${after} ${done + skipped + refused}`, (signal) =>
    listBulkItems(scope, id, { outcome, after, signal }),
  )
  const to = scope === 'all' ? '/operator/jobs' : '/jobs'
  const columns: readonly PlainColumn<BulkItem>[] = [
    { label: '#', isNumber: true, cell: ({ place }) => place },
    { label: 'Job', cell: ({ job_id: job }) => <a href={hrefOf(`${to}/${job}`)}>{shortId(job)}</a> },
    { label: 'What became of it', cell: (item) => item.outcome },
    {
      label: 'New job',
      cell: ({ new_job_id: made }) => made !== null && <a href={hrefOf(`${to}/${made}`)}>{shortId(made)}</a>,
    },
    {
      label: 'Why',
      cell: ({ message }) => message !== null && <Words text={message} />,
      className: () => 'failed-text',
    },
  ]
  return (
    <>
      <nav class="segments" aria-label="What became of them">
        {[null, ...OUTCOMES].map((each) => (
          <button
            key={each}
            type="button"
            class="link-button"
            aria-current={outcome === each ? 'true' : undefined}
            onClick={() => setQuery({ outcome: each, after: null })}
          >
            {each ?? 'all'}
          </button>
        ))}
      </nav>
      <LoadedTable
        resource={resource}
        rowsOf={({ jobs }) => jobs}
        label="Its jobs"
        columns={columns}
        keyOf={({ place }) => place}
        empty={<p class="dim">None.</p>}
      />
      {resource.data.value?.next != null && (
        <button
          type="button"
          class="button small"
          onClick={() => setQuery({ after: String(resource.data.value?.next ?? 0) })}
        >
          Next page
        </button>
      )}
    </>
  )
}
