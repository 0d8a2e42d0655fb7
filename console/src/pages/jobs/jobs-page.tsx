/** Every job of the account: filters in the address, rows that stay in place, one to peek at, many to act on. */
import { useCallback, useMemo, useState } from 'preact/hooks'
import type { BulkChoice, BulkKind } from '../../api/bulk.ts'
import { describeFilter, isEmptyFilter, type JobFilter, readFilter, writeFilter } from '../../api/filter.ts'
import { zipHref } from '../../api/jobs.ts'
import { FailureReasons } from '../../components/many/failure-reasons.tsx'
import { ManyDialog } from '../../components/many/many-deeds.tsx'
import { ManyStrip } from '../../components/many/many-strip.tsx'
import { EmptyState, ErrorBox, Skeleton } from '../../components/state.tsx'
import { type Column, DataTable, step } from '../../components/table/data-table.tsx'
import { showToast, Words } from '../../components/text.tsx'
import { useKeys } from '../../keys/keys.ts'
import { BASE, hrefOf, navigate, query, setQuery } from '../../routes.ts'
import { cancelOne } from '../../state/deeds.ts'
import { peekJob } from '../../state/live/live.ts'
import { rememberList } from '../../state/visited-list.ts'
import { plural } from '../../text/format.ts'
import { FilterBar } from './filter-bar.tsx'
import { JobRow } from './job-row.tsx'
import { PeekPanel } from './peek-panel.tsx'
import { ChooseAllBox, filterWords, type Selection, SelectionBar, useSelection } from './selection-bar.tsx'
import { useJobList } from './use-job-list.ts'

const COLUMNS: readonly Column[] = [
  { name: 'status', label: 'State' },
  { name: 'name', label: 'Job' },
  { name: 'trail', label: 'Node, error or results' },
  { name: 'time', label: 'Time' },
  { name: 'cost', label: 'Cost' },
  { name: 'made', label: 'Submitted' },
]

export function JobsPage() {
  const filter = readFilter(query.value)
  const key = writeFilter(filter).toString()
  const source = useJobList(filter, key)
  const { list, isReady, error } = source
  const peek = query.value.get('peek')
  const { rows, fresh, cursor } = list.value
  const selection = useSelection(rows, key)
  rememberList(key, rows)
  const { move, asked, setAsked } = useListKeys(rows, selection, peek)
  const ofChosen: BulkChoice = selection.isEverything.value
    ? { of: { filter: filterWords(filter) } }
    : { of: { job_ids: [...selection.chosen.value] } }

  return (
    <section class={`page jobs ${peek === null ? '' : 'with-peek'}`}>
      <h1 class="unseen">Jobs</h1>
      <FilterBar filter={filter} counts={source.counts.value} />
      <ManyStrip scope="own" />
      {filter.statuses.includes('failed') && <Reasons rows={rows} hasMore={cursor !== null} filter={filter} />}
      {error.value !== null && !isReady.value && <ErrorBox error={error.value} onRetry={source.refresh} />}
      {error.value !== null && isReady.value && (
        <p class="stale-line" role="status">
          <Words text={error.value.message} />: the last answer is shown, and asked again.
        </p>
      )}
      <div class="jobs-body">
        <div class="jobs-list">
          {fresh.length > 0 && (
            <button type="button" class="fresh-pill" onClick={source.showFresh}>
              {plural(fresh.length, 'new job')}
            </button>
          )}
          {!isReady.value && error.value === null && <Skeleton rows={12} />}
          {isReady.value && rows.length === 0 && cursor === null && <NoJobs filter={filter} />}
          {isReady.value && rows.length === 0 && cursor !== null && (
            <p class="dim" role="status">
              Looking further back…
            </p>
          )}
          {rows.length > 0 && <JobTable source={source} selection={selection} />}
        </div>
        {peek !== null && <PeekPanel id={peek} onMove={move} />}
      </div>
      <SelectionBar
        selection={selection}
        rows={rows}
        filter={filter}
        counts={source.counts.value}
        hasMore={cursor !== null || fresh.length > 0}
      />
      {asked !== null && (
        <ManyDialog
          scope="own"
          choice={ofChosen}
          kind={asked}
          onClose={() => setAsked(null)}
          onDone={selection.clear}
        />
      )}
    </section>
  )
}

const LOOKED_AT = 1000

interface ReasonsProps {
  readonly rows: readonly string[]
  readonly hasMore: boolean
  readonly filter: JobFilter
}

/** Jobs that failed change no more: they are looked at when the list changes, and not when any job does. */
function Reasons({ rows, hasMore, filter }: ReasonsProps) {
  const jobs = useMemo(() => rows.slice(0, LOOKED_AT).flatMap((id) => peekJob(id) ?? []), [rows])
  return (
    <FailureReasons
      scope="own"
      jobs={jobs}
      hasMore={hasMore || rows.length > LOOKED_AT}
      base="/jobs"
      filter={filterWords(filter)}
    />
  )
}

/** Keys move the current row and act on it, or on those that were chosen. */
function useListKeys(rows: readonly string[], selection: Selection, peek: string | null) {
  const [asked, setAsked] = useState<BulkKind | null>(null)
  const { chosen, isEverything, current, choose, clear } = selection
  const move = (by: 1 | -1) => {
    const next = step(rows, current.value, by)
    if (next === null) return true
    current.value = next
    if (peek !== null) setQuery({ peek: next }, { replace: true })
    requestAnimationFrame(() => document.querySelector<HTMLElement>(`[data-row="${next}"] a`)?.focus())
    return true
  }
  const onCurrent = (deed: (id: string) => unknown) => () => {
    if (current.value === null) return false
    void deed(current.value)
    return true
  }
  const hasChosen = chosen.value.size > 0 || isEverything.value
  const onChosen = (kind: BulkKind, deed: (id: string) => unknown) => () => {
    if (!hasChosen) return onCurrent(deed)()
    setAsked(kind)
    return true
  }
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ']': () => move(1),
    '[': () => move(-1),
    Enter: onCurrent((id) => navigate(`/jobs/${id}`)),
    ' ': onCurrent((id) => setQuery({ peek: peek === id ? null : id })),
    x: onCurrent((id) => choose(id, false)),
    X: onCurrent((id) => choose(id, true)),
    c: onChosen('cancel', cancelOne),
    r: onCurrent((id) => navigate(`/run?from=${id}`)),
    d: onChosen('download', downloadOne),
    Escape: () => {
      if (peek !== null) setQuery({ peek: null }, { replace: true })
      else if (hasChosen) clear()
      else return false
      return true
    },
  })
  return { move, asked, setAsked }
}

interface JobTableProps {
  readonly source: ReturnType<typeof useJobList>
  readonly selection: Selection
}

function JobTable({ source, selection }: JobTableProps) {
  const { rows, stale } = source.list.value
  const { chosen, isEverything, current, choose } = selection
  const loadMore = useCallback(() => source.loadMore(), [source])
  return (
    <DataTable
      className="jobs-table"
      label="Jobs"
      columns={[{ name: 'select', label: <ChooseAllBox selection={selection} rows={rows} /> }, ...COLUMNS]}
      ids={rows}
      current={current.value}
      onCurrent={(id) => {
        current.value = id
      }}
      classOf={(id) => (stale.has(id) ? 'stale' : '')}
      renderRow={(id) => <JobRow id={id} isChosen={isEverything.value || chosen.value.has(id)} onChoose={choose} />}
      onEndInSight={loadMore}
      onTopChange={(isAtTop) => {
        source.isAtTop.value = isAtTop
      }}
      onPointed={(isPointed) => {
        source.isPointed.value = isPointed
      }}
    />
  )
}

function NoJobs({ filter }: { readonly filter: ReturnType<typeof readFilter> }) {
  if (isEmptyFilter(filter))
    return (
      <EmptyState title="No jobs yet">
        <p class="dim">Every run of a workflow is a job, whichever client submits it.</p>
        <a class="button primary" href={hrefOf('/run')}>
          Run a workflow
        </a>
      </EmptyState>
    )
  return (
    <EmptyState title={`No ${describeFilter(filter)}`}>
      <a class="button" href={hrefOf('/jobs')}>
        Clear the filter
      </a>
    </EmptyState>
  )
}

/** What the job made, as one file. */
function downloadOne(id: string): void {
  if ((peekJob(id)?.outputs ?? 0) === 0) return showToast('There is nothing to download: no outputs.')
  const link = document.createElement('a')
  link.href = zipHref(BASE, [id])
  link.download = ''
  link.click()
}
