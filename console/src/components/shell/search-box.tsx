/** Finds jobs by an id, a metadata value, an error code, a node class or a weights file; an id leads to its job. */
import { useRef } from 'preact/hooks'
import { useKeys } from '../../keys/keys.ts'
import { navigate, path, query } from '../../routes.ts'
import { Icon } from '../icon.tsx'

const JOB_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export function SearchBox() {
  const field = useRef<HTMLInputElement>(null)
  useKeys({
    '/': () => {
      field.current?.focus()
      field.current?.select()
      return true
    },
  })
  function submit(event: Event): void {
    event.preventDefault()
    const text = field.current?.value.trim() ?? ''
    if (JOB_ID.test(text)) navigate(`/jobs/${text.toLowerCase()}`)
    else navigate(text === '' ? '/jobs' : `/jobs?q=${encodeURIComponent(text)}`)
    field.current?.blur()
  }
  return (
    <form class="search" role="search" onSubmit={submit}>
      <Icon name="search" />
      <input
        ref={field}
        type="search"
        aria-label="Search jobs"
        placeholder="Search jobs: id, metadata, error, node, weights"
        value={path.value === '/jobs' ? (query.value.get('q') ?? '') : ''}
        spellcheck={false}
        onKeyDown={(event) => {
          if (event.key === 'Escape') field.current?.blur()
        }}
      />
      <kbd aria-hidden="true">/</kbd>
    </form>
  )
}
