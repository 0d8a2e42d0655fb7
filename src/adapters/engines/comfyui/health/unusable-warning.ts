/**
 * Logs that a server cannot be used, why, and what its process printed last: soon after that is known, and again only when the
 * reason changes or when the server has been ready in between.
 */
import type { Log } from '../../../../../lib/log.ts'
import { sleep } from '../../../../../lib/waiting/sleep.ts'
import { RECYCLED } from '../launch/supervisor.ts'
import type { ServerState } from './server-monitor.ts'

interface UnusableWarningOptions {
  readonly log: Log
  state(): Pick<ServerState, 'state' | 'lastError'>
  /** The last lines of its process; empty when we did not start it. */
  lastLines(): readonly string[]
  /** We started it ourselves: that it does not answer at first is expected. */
  readonly isOurs: boolean
  readonly signal: AbortSignal
}

// A server that accepts connections and never answers would be noticed only when the call to it times out: too late to be useful.
const FIRST_WARNING_MS = 4_000
// The words with which the call itself will end.
const NO_ANSWER = '/system_stats did not answer in time'

/** Returns the function to call whenever the state of the server has changed. */
export function createUnusableWarning(options: UnusableWarningOptions): () => void {
  const { log, isOurs } = options
  let logged: string | null = null
  let wasReady = false

  function warn(reason: string): void {
    if (logged !== null && withoutRoute(reason) === withoutRoute(logged)) return
    logged = reason
    const lastLines = options.lastLines()
    log.warn({ reason, ...(lastLines.length > 0 && { lastLines }) }, 'an engine cannot be used')
  }

  function look(): void {
    const { state, lastError } = options.state()
    if (state === 'ready') logged = null
    // That a ready server stopped answering was logged where it was noticed.
    else if (state === 'lost' && wasReady) logged = lastError?.message ?? null
    else if (lastError !== null && lastError.message !== RECYCLED) warn(lastError.message)
    wasReady = state === 'ready'
  }

  async function warnOfSilence(): Promise<void> {
    await sleep(FIRST_WARNING_MS, options.signal)
    if (options.signal.aborted || logged !== null || options.state().state !== 'starting') return
    warn(NO_ANSWER)
  }

  if (!isOurs) void warnOfSilence()
  return look
}

/** Reasons that differ only in the route that was asked are the same. */
function withoutRoute(reason: string): string {
  return reason.replace(/^\/[^\s:]+/, '')
}
