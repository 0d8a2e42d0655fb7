/** All entries of a list that the service gives page by page. */
import { type ServiceApi, toFields } from '../service-api.ts'

// Far more than any catalogue has.
const MAX_PAGES = 20

interface Listed {
  /** Without cursor. */
  readonly query: URLSearchParams
  /** The member of an answer that holds the entries. */
  readonly member: string
  readonly signal: AbortSignal
}

export async function readPages(api: ServiceApi, path: string, { query, member, signal }: Listed) {
  const entries: Readonly<Record<string, unknown>>[] = []
  const asked = new URLSearchParams(query)
  for (let page = 0; page < MAX_PAGES; page++) {
    const answer = toFields(await (await api.call(`${path}?${asked}`, { signal })).json())
    const { [member]: list, next_cursor: cursor } = answer
    entries.push(...(Array.isArray(list) ? list : []).map(toFields))
    if (typeof cursor !== 'string') break
    asked.set('cursor', cursor)
  }
  return entries
}
