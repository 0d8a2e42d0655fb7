/**
 * Numbers of prompts, answered from memory: this process is the only one that writes. The store keeps only where the next block
 * of numbers begins, so a restart skips the rest of a block and hardly any prompt waits for the writer.
 */
import { BoundedMap } from '../../../../../lib/bounded-map.ts'
import type { RunRecordStore } from '../../../../domain/jobs/read/recorded-jobs.ts'

interface Block {
  next: number
  readonly end: number
}

const BLOCK = 100
// Each is one account; a forgotten one begins its next block.
const MAX_KNOWN = 10_000

export function createPromptNumbers(
  reserve: (accountId: string, count: number) => Promise<number>,
): RunRecordStore['nextPromptNumber'] {
  const blocks = new BoundedMap<string, Block>(MAX_KNOWN)
  const asking = new Map<string, Promise<void>>()

  async function ask(accountId: string): Promise<void> {
    try {
      const first = await reserve(accountId, BLOCK)
      blocks.set(accountId, { next: first, end: first + BLOCK })
    } finally {
      asking.delete(accountId)
    }
  }

  return async (accountId) => {
    while (true) {
      const block = blocks.get(accountId)
      if (block !== undefined && block.next < block.end) return block.next++
      const asked = asking.get(accountId) ?? ask(accountId)
      if (!asking.has(accountId)) asking.set(accountId, asked)
      await asked
    }
  }
}
