/** The jobs of all accounts: filters and the place in the list are in the address. */
import { type AskedJobs, cancelAllWaiting, listAllJobs } from '../../../api/admin-jobs.ts'
import { ApiError } from '../../../api/client.ts'
import { describeFilter, isEmptyFilter, readFilter, writeFilter } from '../../../api/filter.ts'
import { EmptyState } from '../../../components/empty-state.tsx'
import { Icon } from '../../../components/icon.tsx'
import { Loaded } from '../../../components/loaded.tsx'
import { confirm } from '../../../components/overlay/confirm.tsx'
import { showToast } from '../../../components/overlay/toast.tsx'
import { Skeleton } from '../../../components/skeleton.tsx'
import { Words } from '../../../components/words.tsx'
import { hrefOf, query, setQuery } from '../../../routes.ts'
import { serverNow } from '../../../state/clock.ts'
import { useResource } from '../../../state/resource.ts'
import { plural } from '../../../text/format.ts'
import { toMarkedText } from '../../../text/marks.ts'
import { FilterBar } from '../../jobs/filter-bar.tsx'
import { OperatorPage } from '../operator-page.tsx'
import { useServiceEvents } from '../use-service-events.ts'
import { OwnedJobs } from './owned-jobs.tsx'

/** Says how many it will hit, and asks, before anything happens. */
async function cancelWaiting(asked: AskedJobs): Promise<void> {
  try {
    const { count, has_more: hasMore } = await cancelAllWaiting(asked, { now: serverNow(), isDry: true })
    if (count === 0) return showToast('None of these jobs wait')
    const isMeant = await confirm({
      title: `Cancel ${plural(count, 'waiting job')}${hasMore ? ' or more' : ''}?`,
      text: 'They end at once; what runs goes on. Each cancel is noted in the audit.',
      deed: `Cancel ${count}`,
      isDangerous: true,
    })
    if (!isMeant) return
    const done = await cancelAllWaiting(asked, { now: serverNow(), isDry: false })
    showToast(`${plural(done.count, 'job')} canceled${done.has_more ? '; there are more' : ''}`)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    showToast(error.message)
  }
}

export function AllJobsPage() {
  const filter = readFilter(query.value)
  const account = query.value.get('account')
  const cursor = query.value.get('cursor')
  const asked: AskedJobs = { filter, account }
  const key = `operator jobs ${writeFilter(filter)} ${account} ${cursor}`
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
        <button type="button" class="button small danger" onClick={() => void cancelWaiting(asked)}>
          Cancel those that wait…
        </button>
      </div>
      <Loaded resource={resource} skeleton={<Skeleton rows={12} />}>
        {({ jobs, next_cursor: next }) => (
          <>
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
