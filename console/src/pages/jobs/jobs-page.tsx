/** Every job of the account: filters in the address, rows that stay in place, one to peek at, many to act on. */
import { type Signal, signal } from '@preact/signals'
import { useCallback, useMemo } from 'preact/hooks'
import { describeFilter, isEmptyFilter, readFilter, writeFilter } from '../../api/filter.ts'
import { zipHref } from '../../api/jobs.ts'
import { isCancelable } from '../../api/summary.ts'
import { EmptyState, ErrorBox, Skeleton } from '../../components/state.tsx'
import { DataTable, step } from '../../components/table/data-table.tsx'
import { showToast, Words } from '../../components/text.tsx'
import { useKeys } from '../../keys/keys.ts'
import { BASE, hrefOf, navigate, query, setQuery } from '../../routes.ts'
import { cancelMany, cancelOne, rerunOne } from '../../state/deeds.ts'
import { jobOf } from '../../state/live/live.ts'
import { rememberList } from '../../state/visited-list.ts'
import { plural } from '../../text/format.ts'
import { FilterBar } from './filter-bar.tsx'
import { JobRow } from './job-row.tsx'
import { PeekPanel } from './peek-panel.tsx'
import { useJobList } from './use-job-list.ts'

const COLUMNS = [
  { name: 'select', label: <span class="unseen">Select</span> },
  { name: 'status', label: 'State' },
  { name: 'name', label: 'Job' },
  { name: 'trail', label: 'Node, error or results' },
  { name: 'time', label: 'Time' },
  { name: 'cost', label: 'Cost' },
  { name: 'made', label: 'Submitted' },
] as const

export function JobsPage() {
  const filter = readFilter(query.value)
  const key = writeFilter(filter).toString()
  const source = useJobList(filter, key)
  const { list, isReady, error } = source
  // Of one list: what was chosen under another filter is not on the screen, and nothing may be done to it.
  const { chosen, current } = useMemo(
    () => ({ chosen: signal<ReadonlySet<string>>(new Set()), current: signal<string | null>(null) }),
    [key],
  )
  const peek = query.value.get('peek')
  const { rows, fresh, cursor } = list.value
  rememberList(key, rows)
  const { toggle, move } = useListKeys(rows, { chosen, current, peek })

  return (
    <section class={`page jobs ${peek === null ? '' : 'with-peek'}`}>
      <h1 class="unseen">Jobs</h1>
      <FilterBar filter={filter} counts={source.counts.value} />
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
          {rows.length > 0 && <JobTable source={source} chosen={chosen} current={current} onChoose={toggle} />}
        </div>
        {peek !== null && <PeekPanel id={peek} onMove={move} />}
      </div>
      <SelectionBar
        chosen={[...chosen.value]}
        onClear={() => {
          chosen.value = new Set()
        }}
        onRerun={rerunOne}
      />
    </section>
  )
}

interface Selection {
  readonly chosen: Signal<ReadonlySet<string>>
  readonly current: Signal<string | null>
}

/** Keys move the current row and act on it, or on those that were chosen. */
function useListKeys(rows: readonly string[], { chosen, current, peek }: Selection & { readonly peek: string | null }) {
  const toggle = useCallback(
    (id: string) => {
      const next = new Set(chosen.peek())
      if (!next.delete(id)) next.add(id)
      chosen.value = next
    },
    [chosen],
  )
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
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ']': () => move(1),
    '[': () => move(-1),
    Enter: onCurrent((id) => navigate(`/jobs/${id}`)),
    ' ': onCurrent((id) => setQuery({ peek: peek === id ? null : id })),
    x: onCurrent(toggle),
    c: onCurrent((id) => (chosen.value.size > 0 ? cancelMany([...chosen.value]) : cancelOne(id))),
    r: onCurrent((id) => navigate(`/run?from=${id}`)),
    d: onCurrent((id) => downloadJobs(chosen.value.size > 0 ? [...chosen.value] : [id])),
    Escape: () => {
      if (peek !== null) setQuery({ peek: null }, { replace: true })
      else if (chosen.value.size > 0) chosen.value = new Set()
      else return false
      return true
    },
  })
  return { toggle, move }
}

interface JobTableProps extends Selection {
  readonly source: ReturnType<typeof useJobList>
  readonly onChoose: (id: string) => void
}

function JobTable({ source, chosen, current, onChoose }: JobTableProps) {
  const { rows, stale } = source.list.value
  const loadMore = useCallback(() => source.loadMore(), [source])
  return (
    <DataTable
      className="jobs-table"
      label="Jobs"
      columns={COLUMNS}
      ids={rows}
      current={current.value}
      onCurrent={(id) => {
        current.value = id
      }}
      classOf={(id) => (stale.has(id) ? 'stale' : '')}
      renderRow={(id) => <JobRow id={id} isChosen={chosen.value.has(id)} onChoose={onChoose} />}
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

// What can be done to the rows that were chosen.

/** The service takes no more in one archive. */
const MAX_ZIPPED = 100

function hasOutputs(id: string): boolean {
  return (jobOf(id)?.outputs ?? 0) > 0
}

/** What these jobs made, as one file. */
function downloadJobs(ids: readonly string[]): void {
  const made = ids.filter(hasOutputs)
  if (made.length === 0) return showToast('There is nothing to download: no outputs.')
  if (made.length > MAX_ZIPPED) return showToast(`One archive takes at most ${MAX_ZIPPED} jobs.`)
  const link = document.createElement('a')
  link.href = zipHref(BASE, made)
  link.download = ''
  link.click()
}

interface SelectionBarProps {
  readonly chosen: readonly string[]
  readonly onClear: () => void
  readonly onRerun: (id: string) => Promise<string | null>
}

function SelectionBar({ chosen, onClear, onRerun }: SelectionBarProps) {
  if (chosen.length === 0) return null
  const cancelable = chosen.filter((id) => isCancelable(jobOf(id)?.status ?? 'expired'))
  const withOutputs = chosen.filter(hasOutputs)
  async function rerunAll(): Promise<void> {
    let count = 0
    for (const id of chosen) if ((await onRerun(id)) !== null) count++
    if (count > 0) showToast(`${plural(count, 'job')} submitted again.`)
    onClear()
  }
  return (
    <div class="selection-bar" role="region" aria-label="Selection">
      <strong>{plural(chosen.length, 'job')} selected</strong>
      {cancelable.length > 0 && (
        <button type="button" class="button danger" onClick={() => void cancelMany(cancelable).then(onClear)}>
          Cancel {cancelable.length}…
        </button>
      )}
      <button type="button" class="button" onClick={() => void rerunAll()}>
        Run again {chosen.length}
      </button>
      {withOutputs.length > 0 && (
        <button type="button" class="button" onClick={() => downloadJobs(withOutputs)}>
          Download {withOutputs.length}
        </button>
      )}
      {chosen.length === 2 && (
        <a class="button" href={hrefOf(`/jobs/${chosen[0]}/diff/${chosen[1]}`)}>
          Compare
        </a>
      )}
      <button type="button" class="button" onClick={onClear}>
        Clear
      </button>
    </div>
  )
}
