/**
 * What a tool is, apart from the protocol that carries it: a name, an honest description, the shape of its input, and a function over
 * the service's API. The library of the protocol is loaded when the first agent comes, and only there.
 */
import type { NodeCatalog } from '../../../engine/graph/node-catalog.ts'
import type { Pictures } from '../../domain/assets/pictures.ts'
import { type ServiceApi, toFields } from './service-api.ts'

export type ToolInput = Readonly<Record<string, unknown>>

export type ToolContent =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly data: string; readonly mimeType: string }
  | {
      readonly type: 'resource_link'
      readonly uri: string
      readonly name: string
      readonly mimeType?: string
      readonly size?: number
      readonly description?: string
    }

/** What the tools of one connection work with. */
export interface ToolHost {
  readonly api: ServiceApi
  readonly catalog: (signal: AbortSignal) => Promise<Pick<NodeCatalog, 'classTypes' | 'find'>>
  readonly pictures: Pick<Pictures, 'preview'>
  /** The log for defects, which an agent can do nothing about. */
  readonly onDefect: (error: unknown) => void
  /** Opens a file of the agent's own machine; null: none may be sent. Throws for files that may not. */
  readonly openFile: ((path: string) => Promise<{ readonly name: string; readonly content: Blob }>) | null
}

export interface ToolCall extends ToolHost {
  readonly signal: AbortSignal
  /** Reports progress to the agent, if it asked for it. Values that do not grow are not sent. */
  tell(progress: number, message: string, total?: number): Promise<void>
}

export interface Tool {
  readonly name: string
  readonly title: string
  readonly description: string
  /** JSON Schema of one member each. */
  readonly properties: Readonly<Record<string, object>>
  readonly required?: readonly string[]
  /** It changes nothing and costs nothing. */
  readonly isReadOnly: boolean
  /** It ends something that cannot be taken up again. */
  readonly isDestructive?: boolean
  run(input: ToolInput, call: ToolCall): Promise<readonly ToolContent[]>
}

/** A mistake of the agent, in words that help it to do better. */
export class ToolError extends Error {}

// About fifty thousand tokens: more than any agent should be told at once.
const MAX_TEXT_CHARS = 200_000

export function text(value: string): ToolContent {
  if (value.length <= MAX_TEXT_CHARS) return { type: 'text', text: value }
  return { type: 'text', text: `${value.slice(0, MAX_TEXT_CHARS)}\n… cut: ${value.length} characters in all` }
}

export function json(value: unknown): ToolContent {
  return text(JSON.stringify(value))
}

// The usual client gives a call up after 60 s without progress.
const WAIT_SECONDS = 50
const MAX_WAIT_SECONDS = 600

export const WAIT_PROPERTY = {
  wait_seconds: {
    type: 'integer',
    minimum: 0,
    maximum: MAX_WAIT_SECONDS,
    description: `How long to wait for the end; ${WAIT_SECONDS} if left out. What has not ended by then goes on.`,
  },
}

export function readWaitMs(input: ToolInput): number {
  const seconds = input['wait_seconds']
  return 1000 * (typeof seconds === 'number' ? seconds : WAIT_SECONDS)
}

/** Every word of the query must occur. */
export function createMatch(query: unknown): (candidate: string) => boolean {
  const words = String(query ?? '')
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
  return (candidate) => {
    const lower = candidate.toLowerCase()
    return words.every((word) => lower.includes(word))
  }
}

// All entries of a list that the service gives page by page.

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
