/** The beginning of a queue and its latest runs, as both stores select them. */
import type { QueueReading } from '../../../../domain/jobs/waits/queue-reading.ts'

export type WaitingRow = readonly [id: string, recipe: string | null, priority: number]
export type HeldRow = readonly [recipe: string | null, startedAt: number]
export type EndedRow = readonly [
  recipe: string | null,
  priority: number,
  seq: number,
  createdAt: number,
  startedAt: number,
  completedAt: number,
]

export interface QueueRows {
  readonly waiting: readonly WaitingRow[]
  readonly held: readonly HeldRow[]
  readonly ended: readonly EndedRow[]
}

export function toQueueReading({ waiting, held, ended }: QueueRows): QueueReading {
  return {
    waiting: waiting.map(([id, recipe, priority]) => ({ id, recipe, priority })),
    held: held.map(([recipe, startedAtMs]) => ({ recipe, startedAtMs })),
    ended: ended.map(([recipe, priority, seq, createdAtMs, startedAtMs, completedAtMs]) => ({
      ...{ recipe, priority, seq, createdAtMs, startedAtMs, completedAtMs },
    })),
  }
}
