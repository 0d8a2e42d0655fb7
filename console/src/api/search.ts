/** What helps to find jobs: how a search may go on, and filters that were saved under a name. */
import { getJson, send } from './client.ts'

/** Whole words that begin with this one, such as `scene=4321`. */
export async function suggest(word: string, signal?: AbortSignal): Promise<readonly string[]> {
  const query = new URLSearchParams({ text: word })
  const answer = await getJson<{ readonly suggestions: readonly string[] }>(`/console/v1/suggestions?${query}`, signal)
  return answer.suggestions
}

export interface View {
  readonly name: string
  /** Of the list of jobs, without the mark. */
  readonly query: string
}

const VIEWS = '/console/v1/views'

export const listViews = (signal?: AbortSignal) => getJson<{ readonly views: readonly View[] }>(VIEWS, signal)

export const saveView = (name: string, query: string) => send('PUT', `${VIEWS}/${encodeURIComponent(name)}`, { query })

export const removeView = (name: string) => send('DELETE', `${VIEWS}/${encodeURIComponent(name)}`)
