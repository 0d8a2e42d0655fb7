/**
 * Removes the history entries of runs that are over, several at once and a moment later: right after a run, its outputs and the
 * next run need the server more. An entry that stays does no harm.
 */
import type { Log } from '../../../../../lib/log.ts'
import type { ComfyBounds } from '../comfy-bounds.ts'
import type { ComfyApi } from '../wire/comfy-api.ts'

export interface Forgetter {
  add(promptId: string): void
  /** Removes the entries that still wait. Harmless when called twice. */
  close(): Promise<void>
}

interface ForgetterDeps {
  readonly api: Pick<ComfyApi, 'forgetHistory'>
  readonly bounds: Pick<ComfyBounds, 'forgetAfterMs'>
  readonly log: Log
}

const MAX_AT_ONCE = 100

export function createForgetter({ api, bounds, log }: ForgetterDeps): Forgetter {
  let waiting: string[] = []
  let timer: NodeJS.Timeout | null = null

  async function flush(): Promise<void> {
    if (timer !== null) clearTimeout(timer)
    timer = null
    const promptIds = waiting
    waiting = []
    if (promptIds.length === 0) return
    await api.forgetHistory(promptIds).catch((error) => log.debug({ err: error }, 'history entries stay on an engine'))
  }

  return {
    add(promptId) {
      waiting.push(promptId)
      if (waiting.length >= MAX_AT_ONCE) flush()
      else timer ??= setTimeout(flush, bounds.forgetAfterMs)
    },
    close: flush,
  }
}
