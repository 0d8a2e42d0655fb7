/** The filter of a list: states with their counts, further words as chips that can be taken away. Everything is in the address. */
import { useState } from 'preact/hooks'
import type { FilterWord, JobFilter } from '../../api/filter.ts'
import type { Counts, JobStatus } from '../../api/summary.ts'
import { Icon } from '../../components/icon.tsx'
import { Dialog } from '../../components/overlay/dialog.tsx'
import { Words } from '../../components/text.tsx'
import { hrefOf, query, setQuery } from '../../routes.ts'
import { formatCount } from '../../text/format.ts'
import { SavedViews } from './saved-views.tsx'

const GROUPS: readonly { readonly label: string; readonly statuses: readonly JobStatus[] }[] = [
  { label: 'Waiting', statuses: ['queued'] },
  { label: 'Running', statuses: ['running', 'canceling'] },
  { label: 'Succeeded', statuses: ['succeeded'] },
  { label: 'Failed', statuses: ['failed'] },
  { label: 'Canceled', statuses: ['canceled'] },
  { label: 'Expired', statuses: ['expired'] },
]

const WORD_LABELS: Readonly<Record<FilterWord, string>> = {
  q: 'search',
  since: 'since',
  until: 'until',
  code: 'error',
  failure: 'same reason',
  class: 'node class',
  weights: 'weights',
  engine: 'engine',
  pool: 'pool',
}

function hrefWith(base: string, statuses: readonly JobStatus[]): string {
  const next = new URLSearchParams(query.value)
  next.delete('peek')
  if (statuses.length === 0) next.delete('status')
  else next.set('status', statuses.join(','))
  const text = next.toString()
  return hrefOf(`${base}${text === '' ? '' : `?${text}`}`)
}

interface FilterBarProps {
  readonly filter: JobFilter
  readonly counts: Counts | null
  /** The page whose list it is. */
  readonly base?: string
}

export function FilterBar({ filter, counts, base = '/jobs' }: FilterBarProps) {
  const [isAdding, setAdding] = useState(false)
  const chosen = filter.statuses.join(',')
  const total = counts === null ? null : Object.values(counts).reduce((sum, count) => sum + count, 0)
  const words = Object.entries(filter.words) as [FilterWord, string][]
  const pairs = Object.entries(filter.metadata)
  return (
    <div class="filter-bar">
      <nav class="segments" aria-label="States">
        <a href={hrefWith(base, [])} aria-current={chosen === '' ? 'true' : undefined}>
          All {total !== null && <span class="number dim">{formatCount(total)}</span>}
        </a>
        {GROUPS.map(({ label, statuses }) => {
          const count = counts === null ? null : statuses.reduce((sum, status) => sum + (counts[status] ?? 0), 0)
          if (count === 0 && chosen !== statuses.join(',') && (label === 'Expired' || label === 'Canceled')) return null
          return (
            <a
              key={label}
              href={hrefWith(base, statuses)}
              aria-current={chosen === statuses.join(',') ? 'true' : undefined}
            >
              {label} {count !== null && <span class="number dim">{formatCount(count)}</span>}
            </a>
          )
        })}
      </nav>
      <div class="chips">
        {words.map(([word, value]) => (
          <FilterChip key={word} label={`${WORD_LABELS[word]}: ${value}`} onRemove={() => setQuery({ [word]: null })} />
        ))}
        {pairs.map(([key, value]) => (
          <FilterChip key={key} label={`${key}=${value}`} onRemove={() => setQuery({ [`meta.${key}`]: null })} />
        ))}
        {base === '/jobs' && <SavedViews filter={filter} />}
        <button type="button" class="button small" onClick={() => setAdding(true)}>
          <Icon name="plus" /> Filter
        </button>
        <button
          type="button"
          class="button small"
          onClick={() => setQuery({ sort: filter.sort === 'newest' ? 'oldest' : null })}
        >
          {filter.sort === 'newest' ? 'Newest first' : 'Oldest first'}
        </button>
      </div>
      {isAdding && <FilterDialog onClose={() => setAdding(false)} />}
    </div>
  )
}

function FilterChip({ label, onRemove }: { readonly label: string; readonly onRemove: () => void }) {
  return (
    <span class="chip">
      <Words text={label} />
      <button type="button" class="chip-remove" aria-label={`Remove filter ${label}`} onClick={onRemove}>
        <Icon name="cross" />
      </button>
    </span>
  )
}

const KINDS = {
  since: 'Submitted since (1h, 24h, 7d, today)',
  code: 'Error code',
  class: 'Node class',
  weights: 'Weights file',
  engine: 'Engine',
  pool: 'Pool',
  meta: 'Metadata (key=value)',
} as const

type Kind = keyof typeof KINDS

/** One more condition for the list. */
function FilterDialog({ onClose }: { readonly onClose: () => void }) {
  const [kind, setKind] = useState<Kind>('since')
  const [value, setValue] = useState('')
  const [problem, setProblem] = useState<string | null>(null)
  function submit(event: Event): void {
    event.preventDefault()
    const text = value.trim()
    if (text === '') return
    if (kind === 'since' && !/^(\d{1,4}[mhd]|today|\d{4}-\d\d-\d\d.*)$/.test(text))
      return setProblem('such as 90m, 24h, 7d, today, or a date like 2026-11-16')
    if (kind !== 'meta') setQuery({ [kind]: text })
    else {
      const at = text.indexOf('=')
      if (at < 1) return setProblem('a key, =, and a value')
      setQuery({ [`meta.${text.slice(0, at)}`]: text.slice(at + 1) })
    }
    onClose()
  }
  return (
    <Dialog title="Filter" onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <label for="filter-kind">What</label>
        <select
          id="filter-kind"
          value={kind}
          onChange={(event) => {
            setKind(event.currentTarget.value as Kind)
            setProblem(null)
          }}
        >
          {Object.entries(KINDS).map(([name, label]) => (
            <option key={name} value={name}>
              {label}
            </option>
          ))}
        </select>
        <label for="filter-value">Is</label>
        <input
          id="filter-value"
          type="text"
          value={value}
          aria-invalid={problem !== null}
          aria-describedby={problem === null ? undefined : 'filter-problem'}
          onInput={(event) => setValue(event.currentTarget.value)}
        />
        {problem !== null && (
          <p id="filter-problem" class="failed-text">
            {problem}
          </p>
        )}
        <div class="dialog-deeds">
          <button type="submit" class="button primary">
            Show
          </button>
        </div>
      </form>
    </Dialog>
  )
}
