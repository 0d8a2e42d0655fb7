/** How a fake server is started and restarted, and what it tells of its prompts. */
import type { FakeFaults } from './faults.ts'
import type { Prompt } from './prompt-queue.ts'

export interface FakeOptions {
  readonly port?: number
  readonly faults?: Partial<FakeFaults>
  readonly version?: string
  readonly checkpoints?: readonly string[]
  readonly without?: readonly string[]
  readonly packs?: Readonly<Record<string, string>>
  /** A folder with `checkpoints`, `loras` and `vae` in it: what lies there is what the server has. */
  readonly modelsDir?: string
  /** How long every node takes, and every load of weights that are not loaded. */
  readonly nodeMs?: number
  readonly loadMs?: number
  readonly maxUploadBytes?: number
  /** Called when a prompt begins and ends, before any client can know. */
  readonly onExecution?: (news: ExecutionNews) => void
  /** What nodes print goes here as well: to the output of a process. */
  readonly onPrint?: (line: string) => void
}

export interface RestartOptions {
  /** How long nobody listens. */
  readonly downMs?: number
  /** Nobody listens before this has resolved. */
  readonly downUntil?: Promise<unknown>
  /** The input folder is lost, too. */
  readonly wipe?: boolean
}

export interface ExecutionNews {
  readonly what: 'begun' | 'ended'
  readonly promptId: string
  readonly graph: Prompt['graph']
  /** Of the end: `success` or `error`. */
  readonly status: string | null
}

/** One prompt that was begun: what is counted when nothing may run twice. */
export interface Execution {
  readonly promptId: string
  readonly graph: Prompt['graph']
  readonly secrets: Prompt['secrets']
  readonly clientId: string | null
  /** As its history says; null: it has not ended. */
  computedMs: number | null
}
