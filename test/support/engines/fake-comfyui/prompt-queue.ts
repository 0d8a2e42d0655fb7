/** The queue and the history of the fake server, with ComfyUI's own order of things: one prompt at a time. */
import type { FakeFaults } from './faults.ts'

export interface Prompt {
  readonly number: number
  readonly id: string
  readonly graph: Record<string, { class_type: string; inputs: Record<string, unknown> }>
  readonly extraData: Record<string, unknown>
  /** As they came, secrets included: what a real server keeps to itself. */
  readonly secrets: Record<string, unknown>
  readonly outputs: readonly string[]
}

export type QueueTuple = readonly [number, string, unknown, unknown, readonly string[]]

export interface HistoryRecord {
  readonly prompt: QueueTuple
  readonly outputs: Record<string, unknown>
  readonly status: { status_str: string; completed: boolean; messages: (readonly [string, unknown])[] }
  readonly meta: Record<string, unknown>
}

export function toTuple({ number, id, graph, extraData, outputs }: Prompt): QueueTuple {
  return [number, id, graph, extraData, outputs]
}

export class PromptQueue {
  readonly history = new Map<string, HistoryRecord>()
  pending: Prompt[] = []
  running: Prompt | null = null
  /** Nothing is taken while this is set. */
  isHeld = false
  #wake: (() => void) | null = null
  readonly #faults: FakeFaults
  readonly #onChange: () => void

  constructor(faults: FakeFaults, onChange: () => void) {
    this.#faults = faults
    this.#onChange = onChange
  }

  put(prompt: Prompt): void {
    this.pending.push(prompt)
    this.#onChange()
    this.#wake?.()
  }

  /** Takes the next one; waits for it. null: the server ends. */
  async take(over: AbortSignal): Promise<Prompt | null> {
    while (!over.aborted) {
      const next = this.pending.toSorted((one, other) => one.number - other.number)[0]
      if (next !== undefined && !this.isHeld && !this.#faults.deadWorker) {
        this.pending = this.pending.filter((prompt) => prompt !== next)
        this.running = next
        this.#onChange()
        return next
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve
        over.addEventListener('abort', () => resolve(), { once: true })
      })
      this.#wake = null
    }
    return null
  }

  letGo(): void {
    this.isHeld = false
    this.#wake?.()
  }

  done(prompt: Prompt, record: Omit<HistoryRecord, 'prompt'>): void {
    const { evictHistory, historyLagMs } = this.#faults
    const keep = () => this.history.set(prompt.id, { ...record, prompt: toTuple(prompt) })
    if (!evictHistory && historyLagMs === 0) keep()
    else if (!evictHistory) setTimeout(keep, historyLagMs)
    this.running = null
    this.#onChange()
  }

  delete(id: string): boolean {
    const before = this.pending.length
    this.pending = this.pending.filter((prompt) => prompt.id !== id)
    if (this.pending.length === before) return false
    this.#onChange()
    return true
  }

  remaining(): number {
    return this.pending.length + (this.running === null ? 0 : 1)
  }
}
