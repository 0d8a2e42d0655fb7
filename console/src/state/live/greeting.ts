import type { Counts } from '../../api/summary.ts'
import type { SseFrame } from './read-sse.ts'

/** What the service would greet with now: its first word, with the counts and the build that it told since. */
export interface Greeting {
  readonly build: string | null
  readonly now: string
  readonly counts: Counts
}

export function renewGreeting(greeting: Greeting | null, { event, data }: SseFrame): Greeting | null {
  if (event === 'hello') return JSON.parse(data) as Greeting
  if (greeting === null) return null
  if (event === 'counts') return { ...greeting, counts: JSON.parse(data) as Counts }
  if (event !== 'notice') return greeting
  const { kind, build } = JSON.parse(data) as { readonly kind: string; readonly build?: string }
  return kind === 'build' && build !== undefined ? { ...greeting, build } : greeting
}
