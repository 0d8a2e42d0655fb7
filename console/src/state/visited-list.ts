/** The list that a job was opened from: `[` and `]` on the job's page stay inside its filter, and "back" leads to it. */
import { signal } from '@preact/signals'

interface VisitedList {
  readonly query: string
  readonly rows: readonly string[]
}

const visited = signal<VisitedList>({ query: '', rows: [] })

export function rememberList(query: string, rows: readonly string[]): void {
  const { value } = visited
  if (value.query !== query || value.rows !== rows) visited.value = { query, rows }
}

export function listAddress(): string {
  return visited.value.query === '' ? '/jobs' : `/jobs?${visited.value.query}`
}

export function neighbour(id: string, by: 1 | -1): string | null {
  const { rows } = visited.value
  const at = rows.indexOf(id)
  return at === -1 ? null : (rows[at + by] ?? null)
}
