/** The jobs of all accounts: filters and the place in the list are in the address. */

import { type AskedJobs, listAllJobs, type OwnedSummary } from '../../../api/admin.ts'
import type { BulkKind } from '../../../api/bulk.ts'
import { describeFilter, isEmptyFilter, readFilter, writeFilter } from '../../../api/filter.ts'
import { Icon } from '../../../components/icon.tsx'
import { jobName, jobTrail } from '../../../components/jobs/job-parts.tsx'
import { FailureReasons } from '../../../components/many/failure-reasons.tsx'
import { ManyDeeds } from '../../../components/many/many-deeds.tsx'
import { ManyStrip } from '../../../components/many/many-strip.tsx'
import { EmptyState, Loaded, Skeleton, StatusPill } from '../../../components/state.tsx'
import { type PlainColumn, PlainTable } from '../../../components/table/plain-table.tsx'
import { Ago, Duration, Words } from '../../../components/text.tsx'
import { hrefOf, query, setQuery } from '../../../routes.ts'
import { serverNow } from '../../../state/clock.ts'
import { useResource } from '../../../state/resource.ts'
import { toMarkedText } from '../../../text/marks.ts'
import { FilterBar } from '../../jobs/filter-bar.tsx'
import { filterWords } from '../../jobs/selection-bar.tsx'
import { OperatorPage, useServiceEvents } from '../operator-page.tsx'

const KINDS: readonly BulkKind[] = ['cancel', 'rerun', 'prioritize']

export function AllJobsPage() {
  const filter = readFilter(query.value)
  const account = query.value.get('account')
  const cursor = query.value.get('cursor')
  const asked: AskedJobs = { filter, account }
  const key = `operator jobs ${writeFilter(filter)} ${account} ${cursor}`
  const words = filterWords(filter)
  const resource = useResource(key, (signal) => listAllJobs(asked, { now: serverNow(), cursor, signal }))
  useServiceEvents(resource)
  return (
    <OperatorPage here="jobs" title="Jobs of all accounts">
      <FilterBar filter={filter} counts={resource.data.value?.counts ?? null} base="/operator/jobs" />
      <div class="chips">
        {account !== null && (
          <button
            type="button"
            class="chip"
            aria-label={`Remove the filter account: ${toMarkedText(account)}`}
            onClick={() => setQuery({ account: null, cursor: null })}
          >
            account: <Words text={account} /> <Icon name="cross" />
          </button>
        )}
        <ManyDeeds scope="all" choice={{ of: { filter: words }, account }} kinds={KINDS} size="small" />
        <a class="dim" href={hrefOf('/operator/bulk')}>
          what was asked of many
        </a>
      </div>
      <ManyStrip scope="all" onProgress={resource.reload} />
      <Loaded resource={resource} skeleton={<Skeleton rows={12} />}>
        {({ jobs, next_cursor: next }) => (
          <>
            <FailureReasons
              scope="all"
              jobs={jobs}
              hasMore={next !== null || cursor !== null}
              base="/operator/jobs"
              filter={words}
              account={account}
            />
            {jobs.length > 0 && <OwnedJobs label="Jobs of all accounts" jobs={jobs} />}
            {jobs.length === 0 && next === null && <NoJobs asked={asked} />}
            <p class="row">
              {cursor !== null && (
                <button type="button" class="button small" onClick={() => setQuery({ cursor: null })}>
                  To the first page
                </button>
              )}
              {next !== null && (
                <button type="button" class="button small" onClick={() => setQuery({ cursor: next })}>
                  Next page
                </button>
              )}
            </p>
          </>
        )}
      </Loaded>
    </OperatorPage>
  )
}

function NoJobs({ asked: { filter, account } }: { readonly asked: AskedJobs }) {
  if (isEmptyFilter(filter) && account === null)
    return (
      <EmptyState title="No jobs yet">
        <p class="dim">Jobs of every account are listed here as soon as somebody submits one.</p>
      </EmptyState>
    )
  return (
    <EmptyState title={`No ${toMarkedText(describeFilter(filter))}${account === null ? '' : ' of this account'}`}>
      <a class="button" href={hrefOf('/operator/jobs')}>
        Clear the filter
      </a>
    </EmptyState>
  )
}

const ACCOUNT: PlainColumn<OwnedSummary> = {
  label: 'Account',
  cell: ({ account_id: account }) => (
    <a href={hrefOf(`/operator/jobs?account=${encodeURIComponent(account)}`)}>
      <Words text={account} />
    </a>
  ),
}

const ENGINE: PlainColumn<OwnedSummary> = {
  label: 'Engine',
  cell: ({ engine }) =>
    engine !== null && (
      <a href={hrefOf(`/operator/engines/${encodeURIComponent(engine)}`)}>
        <Words text={engine} />
      </a>
    ),
}

const COLUMNS: readonly PlainColumn<OwnedSummary>[] = [
  { label: 'State', cell: ({ status }) => <StatusPill status={status} /> },
  {
    label: 'Job',
    cell: (job) => (
      <a href={hrefOf(`/operator/jobs/${job.id}`)}>
        <Words text={jobName(job)} />
      </a>
    ),
  },
  ACCOUNT,
  ENGINE,
  {
    label: 'Node, error or results',
    cell: (job) => <Words text={jobTrail(job)} />,
    className: ({ status }) => (status === 'failed' ? 'failed-text' : 'dim'),
  },
  {
    label: 'Time',
    isNumber: true,
    cell: ({ status, started_at: from, completed_at: to }) => (
      <Duration from={from} to={status === 'running' || status === 'canceling' ? null : (to ?? from)} />
    ),
  },
  { label: 'Submitted', cell: ({ created_at: at }) => <Ago at={at} /> },
]

interface OwnedJobsProps {
  readonly label: string
  readonly jobs: readonly OwnedSummary[]
  /** On the page of one engine its name says nothing. */
  readonly hidesEngine?: boolean
}

/** Jobs of several accounts as a table. */
export function OwnedJobs({ label, jobs, hidesEngine = false }: OwnedJobsProps) {
  const columns = hidesEngine ? COLUMNS.filter((column) => column !== ENGINE) : COLUMNS
  return <PlainTable label={label} columns={columns} rows={jobs} keyOf={({ id }) => id} />
}
