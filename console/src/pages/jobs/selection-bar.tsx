/** The rows of a list that were chosen, one by one, as a range, or all that match; and what can be done to them. */
import { type Signal, signal } from '@preact/signals'
import { useCallback, useMemo } from 'preact/hooks'
import type { BulkChoice, BulkKind } from '../../api/bulk.ts'
import { type JobFilter, toQuery } from '../../api/filter.ts'
import { type Counts, isCancelable, isEnded } from '../../api/summary.ts'
import { ManyDeeds } from '../../components/many/many-deeds.tsx'
import { hrefOf } from '../../routes.ts'
import { serverNow } from '../../state/clock.ts'
import { jobOf } from '../../state/live/live.ts'
import { formatCount, plural } from '../../text/format.ts'

export interface Selection {
  readonly chosen: Signal<ReadonlySet<string>>
  /** Not the rows, but all that match the filter, also those that are not loaded. */
  readonly isEverything: Signal<boolean>
  readonly current: Signal<string | null>
  /** With a range: all from the one that was chosen before to this one. */
  choose(id: string, isRange: boolean): void
  chooseAll(): void
  clear(): void
}

/** Of one list: what was chosen under another filter is not on the screen, and nothing may be done to it. */
export function useSelection(rows: readonly string[], key: string): Selection {
  const state = useMemo(
    () => ({
      chosen: signal<ReadonlySet<string>>(new Set()),
      isEverything: signal(false),
      current: signal<string | null>(null),
      last: null as string | null,
      rows,
    }),
    [key],
  )
  state.rows = rows
  const { chosen, isEverything } = state
  const choose = useCallback(
    (id: string, isRange: boolean) => {
      const next = new Set(isEverything.peek() ? state.rows : chosen.peek())
      const to = state.rows.indexOf(id)
      const from = state.last === null || !state.rows.includes(state.last) ? to : state.rows.indexOf(state.last)
      const range = isRange ? state.rows.slice(Math.min(from, to), Math.max(from, to) + 1) : []
      if (range.length > 0) for (const each of range) next.add(each)
      else if (!next.delete(id)) next.add(id)
      state.last = id
      isEverything.value = false
      chosen.value = next
    },
    [state],
  )
  const chooseAll = useCallback(() => {
    const isWhole = state.rows.every((id) => chosen.peek().has(id))
    chosen.value = new Set(isWhole ? [] : state.rows)
    isEverything.value = false
  }, [state])
  const clear = useCallback(() => {
    chosen.value = new Set()
    isEverything.value = false
  }, [state])
  return { chosen, isEverything, current: state.current, choose, chooseAll, clear }
}

/** The box over the column of boxes: all rows that are loaded, or none. */
export function ChooseAllBox({ selection, rows }: { readonly selection: Selection; readonly rows: readonly string[] }) {
  const { chosen, isEverything } = selection
  const isWhole = rows.length > 0 && rows.every((id) => chosen.value.has(id))
  return (
    <label class="check-target">
      <input
        type="checkbox"
        checked={isWhole || isEverything.value}
        ref={(box) => {
          if (box !== null) box.indeterminate = !isWhole && !isEverything.value && chosen.value.size > 0
        }}
        onChange={selection.chooseAll}
      />
      <span class="unseen">Select all that are shown</span>
    </label>
  )
}

const KINDS: readonly BulkKind[] = ['cancel', 'rerun', 'prioritize', 'download']

interface SelectionBarProps {
  readonly selection: Selection
  readonly rows: readonly string[]
  readonly filter: JobFilter
  /** Of the filter, whatever the state. */
  readonly counts: Counts | null
  /** There are further jobs that match. */
  readonly hasMore: boolean
}

export function SelectionBar({ selection, rows, filter, counts, hasMore }: SelectionBarProps) {
  const { chosen, isEverything, clear } = selection
  const ids = [...chosen.value]
  if (ids.length === 0 && !isEverything.value) return null
  const total = countMatching(filter, counts)
  const isWhole = rows.every((id) => chosen.value.has(id))
  const choice: BulkChoice = isEverything.value ? { of: { filter: filterWords(filter) } } : { of: { job_ids: ids } }
  return (
    <div class="selection-bar" role="region" aria-label="Selection">
      <strong>
        {isEverything.value
          ? `All ${total === null ? '' : `${formatCount(total)} `}matching jobs selected`
          : `${plural(ids.length, 'job')} selected`}
      </strong>
      {!isEverything.value && isWhole && hasMore && (
        <button
          type="button"
          class="link-button"
          onClick={() => {
            isEverything.value = true
          }}
        >
          Select all {total === null ? 'that match' : `${formatCount(total)} that match`}
        </button>
      )}
      <ManyDeeds
        scope="own"
        choice={choice}
        kinds={KINDS}
        counts={isEverything.value ? countByKind(filter, counts) : countChosen(ids)}
        onDone={clear}
      />
      {ids.length === 2 && !isEverything.value && (
        <a class="button" href={hrefOf(`/jobs/${ids[0]}/diff/${ids[1]}`)}>
          Compare
        </a>
      )}
      <button type="button" class="button" onClick={clear}>
        Clear
      </button>
    </div>
  )
}

/** The same names as in the question for the list. */
export function filterWords(filter: JobFilter): Readonly<Record<string, string>> {
  const words = Object.fromEntries(toQuery(filter, serverNow()))
  delete words['sort']
  return words
}

function countMatching({ statuses }: JobFilter, counts: Counts | null): number | null {
  if (counts === null) return null
  const wanted = Object.entries(counts).filter(
    ([status]) => statuses.length === 0 || (statuses as readonly string[]).includes(status),
  )
  return wanted.reduce((sum, [, count]) => sum + count, 0)
}

function countChosen(ids: readonly string[]): Readonly<Record<BulkKind, number>> {
  const jobs = ids.flatMap((id) => jobOf(id) ?? [])
  return {
    cancel: jobs.filter(({ status }) => isCancelable(status)).length,
    rerun: jobs.filter(({ status }) => isEnded(status)).length,
    prioritize: jobs.filter(({ status }) => status === 'queued').length,
    download: jobs.filter(({ status, outputs }) => isEnded(status) && outputs > 0).length,
  }
}

/** Left out: only the service knows. */
function countByKind({ statuses }: JobFilter, counts: Counts | null): Readonly<Partial<Record<BulkKind, number>>> {
  if (counts === null) return {}
  const of = (...wanted: readonly (keyof Counts)[]) =>
    wanted
      .filter((status) => statuses.length === 0 || statuses.includes(status))
      .reduce((sum, status) => sum + counts[status], 0)
  const ended = of('succeeded', 'failed', 'canceled', 'expired')
  return {
    cancel: of('queued', 'running'),
    rerun: ended,
    prioritize: of('queued'),
    // How many of them have made something, nobody has counted.
    ...(ended === 0 && { download: 0 }),
  }
}
