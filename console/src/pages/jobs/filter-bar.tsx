/** The filter of a list: states with their counts, further words as chips that can be taken away. Everything is in the address. */
import { useState } from 'preact/hooks'
import type { FilterWord, JobFilter } from '../../api/filter.ts'
import type { Counts, JobStatus } from '../../api/summary.ts'
import { Icon } from '../../components/icon.tsx'
import { Words } from '../../components/words.tsx'
import { hrefOf, query, setQuery } from '../../routes.ts'
import { formatCount } from '../../text/format.ts'
import { FilterDialog } from './filter-dialog.tsx'

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
