/** What the tools for agents are given when they are served over standard input and output instead of HTTP. */
import type { Readable, Writable } from 'node:stream'
import type { Pictures } from '../../../domain/assets/pictures.ts'

export interface AgentConnection {
  /** The service that the tools work on. */
  readonly server: { readonly baseUrl: string; readonly token: string | null }
  readonly version: string
  /** Files below these may be uploaded by their path; none: no file of this machine may. */
  readonly folders: readonly string[]
  readonly pictures: Pictures
  readonly input: Readable
  readonly output: Writable
  readonly signal: AbortSignal
  readonly warn: (message: string) => void
}

export type ServeAgent = (connection: AgentConnection) => Promise<void>
