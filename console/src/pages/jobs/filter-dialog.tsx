/** One more condition for the list. */
import { useState } from 'preact/hooks'
import { Dialog } from '../../components/overlay/dialog.tsx'
import { setQuery } from '../../routes.ts'

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

export function FilterDialog({ onClose }: { readonly onClose: () => void }) {
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
