/**
 * Says in the log that a server cannot be used, why, and what its process printed last: soon after it is so, and again only when
 * the reason is another one or when it has been ready in between.
 */
import type { Log } from '../../../../../lib/log.ts'
import { sleep } from '../../../../../lib/sleep.ts'
import { RECYCLED } from '../launch/supervisor.ts'
import type { PulseState } from './server-monitor.ts'

export interface TroubleOptions {
  readonly log: Log
  state(): Pick<PulseState, 'state' | 'lastError'>
  /** What its process printed last; empty when the process is not ours. */
  lastLines(): readonly string[]
  /** That a process of ours does not answer for a while after its start is no news. */
  readonly isOurs: boolean
  readonly signal: AbortSignal
}

// A call may take longer than anybody wants to wait for the first word about a server that swallows everything.
const FIRST_WORD_MS = 4_000
// As the call itself will end.
const NO_ANSWER = '/system_stats did not answer in time'

/** Returns what is to be called with every change of the server's state. */
export function createTroubleTeller(options: TroubleOptions): () => void {
  const { log, isOurs } = options
  let said: string | null = null
  let wasReady = false

  function say(reason: string): void {
    if (said !== null && toEssence(reason) === toEssence(said)) return
    said = reason
    const lastLines = options.lastLines()
    log.warn({ reason, ...(lastLines.length > 0 && { lastLines }) }, 'an engine cannot be used')
  }

  function look(): void {
    const { state, lastError } = options.state()
    if (state === 'ready') said = null
    // That it is lost was said where it was noticed.
    else if (state === 'lost' && wasReady) said = lastError?.message ?? null
    else if (lastError !== null && lastError.message !== RECYCLED) say(lastError.message)
    wasReady = state === 'ready'
  }

  async function remind(): Promise<void> {
    await sleep(FIRST_WORD_MS, options.signal)
    if (options.signal.aborted || said !== null || options.state().state !== 'starting') return
    say(NO_ANSWER)
  }

  if (!isOurs) void remind()
  return look
}

/** Which of its routes could not be asked makes no difference. */
function toEssence(reason: string): string {
  return reason.replace(/^\/[^\s:]+/, '')
}
