/**
 * Has the server forget runs that are over, a few at a time and when nobody waits for it: right behind a run the line to the
 * server belongs to its outputs, and to the next one. A run that is not forgotten does no harm.
 */
import type { Log } from '../../../../../lib/log.ts'
import type { ComfyBounds } from '../comfy-bounds.ts'
import type { ComfyApi } from '../wire/comfy-api.ts'

export interface Forgetter {
  add(promptId: string): void
  /** Asks at once for what still waits. Harmless when called twice. */
  close(): Promise<void>
}

export interface ForgetterDeps {
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
    await api.forgetHistory(promptIds).catch((error) => log.debug({ err: error }, 'history entries stay'))
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
