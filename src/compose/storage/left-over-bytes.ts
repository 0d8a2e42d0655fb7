/** Removes bytes that a crash left without a record. Runs once per start, in the background. */
import type { Log } from '../../../lib/log.ts'
import type { AssetActions } from '../asset-actions.ts'

export function sweepLeftOverBytes({ sweepOrphans }: Pick<AssetActions, 'sweepOrphans'>, log: Log): AsyncDisposable {
  const ending = new AbortController()
  const swept = sweep()

  async function sweep(): Promise<void> {
    try {
      const removed = await sweepOrphans({ signal: ending.signal })
      if (removed > 0) log.info({ removed }, 'removed bytes that a crash had left behind')
    } catch (error) {
      log.warn({ err: error }, 'left-over bytes could not be swept; the next start tries again')
    }
  }

  return {
    async [Symbol.asyncDispose]() {
      ending.abort()
      await swept
    },
  }
}
