/**
 * Whether a server still answers while one long call to it is under way: a submit, an upload, a file. Such a call may rightly be
 * silent for a minute, but a server that lost its power is silent for ever. So a small question is asked beside the call, and
 * when it gets no answer for as long as a run may go without one, the call is given up.
 */
import { performance } from 'node:perf_hooks'
import type { ComfyBounds } from '../comfy-bounds.ts'
import type { ComfyApi } from '../wire/comfy-api.ts'
import { CallError } from '../wire/comfy-http.ts'

interface LivenessWatch extends Disposable {
  /** Aborted when the server has answered nothing for too long. */
  readonly silent: AbortSignal
}

interface LivenessDeps {
  readonly api: Pick<ComfyApi, 'queueRemaining'>
  readonly bounds: Pick<ComfyBounds, 'pollMaxMs' | 'unreachableMs'>
}

export function watchLiveness({ api, bounds }: LivenessDeps): LivenessWatch {
  const silent = new AbortController()
  const over = new AbortController()

  async function ask(): Promise<boolean> {
    try {
      await api.queueRemaining({ signal: over.signal })
      return true
    } catch (error) {
      // A bad answer is an answer.
      return error instanceof CallError && (error.fault === 'status' || error.fault === 'malformed')
    }
  }

  let answeredAt = performance.now()
  // A timer alone, as long as there is nothing to ask: nearly every call is over by then.
  let timer = setTimeout(look, bounds.pollMaxMs)

  async function look(): Promise<void> {
    const isAnswered = await ask()
    if (over.signal.aborted) return
    if (isAnswered) answeredAt = performance.now()
    else if (performance.now() - answeredAt >= bounds.unreachableMs) return silent.abort()
    timer = setTimeout(look, bounds.pollMaxMs)
  }

  return {
    silent: silent.signal,
    [Symbol.dispose]() {
      clearTimeout(timer)
      over.abort(null)
    },
  }
}

export function silenceError({ bounds }: Pick<LivenessDeps, 'bounds'>): CallError {
  return new CallError('timeout', `nothing was answered for ${Math.round(bounds.unreachableMs / 1000)} s`)
}
