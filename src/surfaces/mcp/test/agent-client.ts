/** The official client of the protocol, unmodified, over each transport. */
import { Client, StreamableHTTPClientTransport, type Transport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { PROGRAM } from '../../../../test/support/app/program.ts'

export type Way = 'http' | 'http of 2025' | 'stdio'

export interface Connection {
  readonly url: string
  readonly key: string
  readonly way: Way
  /** Further arguments of the command. */
  readonly args?: readonly string[]
}

interface Content {
  readonly type: string
  readonly text?: string
  readonly data?: string
  readonly mimeType?: string
  readonly uri?: string
}

/** What tests look for in the answers of all tools; each has some of it. */
interface ToldJson {
  readonly id: string
  readonly status: string
  readonly metadata: object
  readonly found: number
  readonly jobs: readonly ToldJson[]
  readonly outputs: readonly { readonly asset_id: string; readonly url: string }[]
  readonly classes: readonly { readonly class_type: string }[]
  readonly input: { readonly required: readonly string[] }
  readonly currency: string
  readonly asset_id: string
  readonly size_bytes: number
  readonly content_type: string
  readonly workflow_input: object
  readonly is_accepted: boolean
  readonly request_id?: string
}

interface Told {
  readonly isError: boolean
  readonly content: readonly Content[]
  readonly text: string
  /** The first text, as JSON; empty when it is none. */
  readonly json: ToldJson
}

interface Progress {
  readonly progress: number
  readonly message?: string
}

export interface Agent extends AsyncDisposable {
  readonly client: Client
  /** With `onprogress`, progress is asked for. */
  use(name: string, input?: object, onprogress?: (progress: Progress) => void): Promise<Told>
}

export async function connectAgent({ url, key, way, args = [] }: Connection): Promise<Agent> {
  const mode = way === 'http of 2025' ? 'legacy' : 'auto'
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
  const headers = { Authorization: `Bearer ${key}` }
  const transport =
    way === 'stdio'
      ? new StdioClientTransport({
          command: process.execPath,
          args: [PROGRAM, 'mcp', '--base-url', url, '--token', key, ...args],
          env: { PATH: process.env['PATH'] ?? '' },
        })
      : new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } })
  await client.connect(transport)
  const progress = listenToProgress(transport)
  return {
    client,
    async use(name, input = {}, onprogress) {
      const asked = onprogress && { onprogress: () => {}, resetTimeoutOnProgress: true }
      progress.listener = onprogress
      const result = await client.callTool({ name, arguments: input as Record<string, unknown> }, asked)
      const content = result.content as readonly Content[]
      const text = content.find((item) => item.type === 'text')?.text ?? ''
      return { isError: result.isError === true, content, text, json: text.startsWith('{') ? JSON.parse(text) : {} }
    },
    [Symbol.asyncDispose]: () => client.close(),
  }
}

/**
 * Progress as it comes over the wire: the client forgets whom to tell as soon as it has the answer, so a note that it reads together
 * with the answer reaches nobody.
 */
function listenToProgress(transport: Transport): { listener: ((progress: Progress) => void) | undefined } {
  const heard: ReturnType<typeof listenToProgress> = { listener: undefined }
  const { onmessage } = transport
  transport.onmessage = (message, ...rest) => {
    if ('method' in message && message.method === 'notifications/progress')
      heard.listener?.(message.params as unknown as Progress)
    onmessage?.(message, ...rest)
  }
  return heard
}
