/**
 * The id of a prompt, from what it is an attempt at: whoever knows the job can find the prompts of its earlier attempts on a
 * server again, also after a restart of ours. A canonical UUID (version 8), as newer servers demand.
 */
import { hash } from 'node:crypto'

export interface PromptKey {
  readonly jobId: string
  readonly attempt: number
  /** Counts the submits of one attempt. */
  readonly round: number
}

export const MAX_ROUNDS = 3

export function promptIdOf({ jobId, attempt, round }: PromptKey): string {
  const bytes = hash('sha256', `atelier prompt ${jobId} ${attempt} ${round}`, 'buffer').subarray(0, 16)
  bytes[6] = (bytes[6]! & 0x0f) | 0x80
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

/** Every id that earlier attempts may have used. */
export function earlierPromptIds(jobId: string, attempt: number): ReadonlySet<string> {
  const ids = new Set<string>()
  for (let before = 1; before < attempt; before++) {
    for (let round = 0; round < MAX_ROUNDS; round++) ids.add(promptIdOf({ jobId, attempt: before, round }))
  }
  return ids
}
