/**
 * The main thread's end of the engine thread: starts it with the first run, passes runs to it, and ends it, its compute threads and
 * its results once there has been none for a while. A thread that is lost is replaced with the next run. One whose event loop does
 * not turn any more, or that does not answer an abort, is ended as well. The run that it was working on fails; the others are lost
 * without fault and may be run again.
 */

import { Worker } from 'node:worker_threads'
import type { Log } from '../../lib/log.ts'
import { toHeapLimits } from '../../lib/threads/thread-heap.ts'
import { sleep } from '../../lib/waiting/sleep.ts'
import type { EngineEvent } from '../graph/run-event.ts'
import { answerModelCall, type RunModel } from './model-line.ts'
import {
  type CancelFlag,
  type EngineThreadData,
  type FromEngine,
  PULSE,
  type Pulse,
  type RunMessage,
  type ToEngine,
} from './protocol.ts'
import { EngineThreadLostError, RunStream } from './run-stream.ts'

/**
 * Reserves `count` consecutive numbers for output files of one name prefix and returns the first. Two runs never get the same.
 */
export type ReserveOutputNumbers = (folder: string, prefix: string, count: number) => Promise<number>

interface ThreadRun extends Omit<RunMessage, 'type' | 'runId' | 'cancelFlag'> {
  readonly reserveOutputNumbers: ReserveOutputNumbers
  readonly runModel: RunModel | null
  readonly signal: AbortSignal
}

interface EngineThreadLink {
  run(run: ThreadRun): AsyncGenerator<EngineEvent, void, undefined>
  close(): Promise<void>
}

// One for all: an abort without a reason makes an error with a stack, for every run.
const RUN_OVER = new Error('the run is over')
// An abort is answered within milliseconds; a thread that takes this long will not answer any more.
const ABORT_ANSWER_MS = 10_000
const RESTART_PAUSE_MS = 1_000
const PULSE_LOOK_MS = 500
// Values of all runs are bounded far below; whatever reaches this is a defect, and costs one thread instead of the process.
const HEAP_MB = 2048

interface LiveRun {
  readonly stream: RunStream
  readonly reserveOutputNumbers: ReserveOutputNumbers
  readonly runModel: RunModel | null
  /** Aborted when the run is cancelled, and when it has ended. */
  readonly over: AbortController
}

interface Incarnation {
  readonly worker: Worker
  readonly runs: Map<number, LiveRun>
  readonly pulse: Pulse
  isEnded: boolean
  /** Ended because there was nothing to do. */
  isResting: boolean
  /** Why we ended it, and whether the run at work is to blame for that. */
  verdict: string | null
}

interface EngineThreadOptions {
  readonly data: Omit<EngineThreadData, 'pulse'>
  /** Of the thread and of the programs that it starts; absent: ours. */
  readonly environment?: NodeJS.ProcessEnv
  /** How long the thread stays after the last run. */
  readonly restMs: number
  readonly log: Log
}

export function openEngineThread(deps: EngineThreadOptions): EngineThreadLink {
  const closing = new AbortController()
  let nextRunId = 0
  let current: Started | null = null
  let pause: Promise<void> = Promise.resolve()
  let rest: NodeJS.Timeout | undefined

  function ensureThread(): Incarnation {
    if (current !== null && !current.incarnation.isEnded) return current.incarnation
    const started = start(deps)
    current = started
    void started.ended.then((reason) => onEnded(started, reason))
    return started.incarnation
  }

  function onEnded({ incarnation, startedAt }: Started, reason: string): void {
    settleRuns(incarnation, { reason, isClosing: closing.signal.aborted })
    if (closing.signal.aborted || incarnation.isResting) return
    deps.log.error({ reason }, 'the engine thread ended; the next run starts another')
    // A thread that died at once would die again at once.
    if (performance.now() - startedAt < RESTART_PAUSE_MS) pause = sleep(RESTART_PAUSE_MS, closing.signal)
  }

  function restLater(incarnation: Incarnation): void {
    clearTimeout(rest)
    if (incarnation.runs.size > 0) return
    rest = setTimeout(() => {
      if (incarnation.runs.size > 0 || incarnation !== current?.incarnation) return
      // The next run starts another, also while this one is still on its way out.
      incarnation.isResting = true
      current = null
      void incarnation.worker.terminate()
    }, deps.restMs)
    rest.unref()
  }

  async function* run(threadRun: ThreadRun): AsyncGenerator<EngineEvent, void, undefined> {
    await pause
    if (closing.signal.aborted) throw new Error('the engine is closed')
    const { reserveOutputNumbers, runModel, signal, ...message } = threadRun
    const incarnation = ensureThread()
    const runId = nextRunId++
    const cancelFlag: CancelFlag = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
    const stream = new RunStream((weight) => send(incarnation, { type: 'taken', runId, weight }))
    const over = new AbortController()
    incarnation.runs.set(runId, { stream, reserveOutputNumbers, runModel, over })
    let stuck: NodeJS.Timeout | undefined
    const abort = () => {
      over.abort()
      Atomics.store(cancelFlag, 0, 1)
      send(incarnation, { type: 'cancel', runId })
      stuck = setTimeout(() => end(incarnation, 'it did not answer an interrupt'), ABORT_ANSWER_MS)
    }
    try {
      if (signal.aborted) Atomics.store(cancelFlag, 0, 1)
      else signal.addEventListener('abort', abort, { once: true })
      send(incarnation, { type: 'run', runId, cancelFlag, ...message })
      yield* stream.read()
    } finally {
      clearTimeout(stuck)
      over.abort(RUN_OVER)
      signal.removeEventListener('abort', abort)
      incarnation.runs.delete(runId)
      // A reader that leaves early ends the run; after its own end this changes nothing.
      Atomics.store(cancelFlag, 0, 1)
      send(incarnation, { type: 'cancel', runId })
      restLater(incarnation)
    }
  }

  return {
    run,
    async close() {
      closing.abort()
      clearTimeout(rest)
      await current?.incarnation.worker.terminate()
      await current?.ended
    },
  }
}

interface Started {
  readonly incarnation: Incarnation
  readonly startedAt: number
  /** Resolves with the reason once the thread is gone. */
  readonly ended: Promise<string>
}

function start({ data, environment, log }: EngineThreadOptions): Started {
  const pulse: Pulse = new Int32Array(new SharedArrayBuffer(PULSE.words * Int32Array.BYTES_PER_ELEMENT))
  const worker = new Worker(new URL('./engine-thread.ts', import.meta.url), {
    workerData: { ...data, pulse } satisfies EngineThreadData,
    env: environment,
    resourceLimits: toHeapLimits(HEAP_MB),
  })
  const incarnation: Incarnation = { worker, runs: new Map(), pulse, isEnded: false, isResting: false, verdict: null }
  const ended = Promise.withResolvers<string>()
  let reason = 'it was stopped'
  let watching: NodeJS.Timeout | undefined
  worker.on('message', (message: FromEngine) => {
    if (message.type === 'ready') watching = watchPulse(incarnation, data.nodeTimeoutMs)
    else handle(incarnation, message, log)
  })
  worker.on('error', (error) => {
    reason = error.message
  })
  worker.on('exit', () => {
    clearInterval(watching)
    incarnation.isEnded = true
    ended.resolve(incarnation.verdict ?? reason)
  })
  return { incarnation, startedAt: performance.now(), ended: ended.promise }
}

function end(incarnation: Incarnation, verdict: string): void {
  incarnation.verdict ??= verdict
  void incarnation.worker.terminate()
}

/** A node on the engine thread itself that does not come back holds up everybody: it gets the time that any node gets. */
function watchPulse(incarnation: Incarnation, timeoutMs: number): NodeJS.Timeout {
  let beats = Number.NaN
  let since = 0
  return setInterval(() => {
    const now = performance.now()
    const seen = Atomics.load(incarnation.pulse, PULSE.beats)
    if (seen !== beats) {
      beats = seen
      since = now
    } else if (now - since > timeoutMs) {
      end(incarnation, `a node did not finish within ${timeoutMs / 1000} s (setting nodeTimeout)`)
    }
  }, PULSE_LOOK_MS)
}

/** The thread is gone. Unless we wanted that, whoever it was working for fails; the others did nothing wrong. */
function settleRuns({ runs, pulse }: Incarnation, end: { readonly reason: string; readonly isClosing: boolean }): void {
  const { reason, isClosing } = end
  const culprit = isClosing ? -1 : Atomics.load(pulse, PULSE.runAtWork) - 1
  for (const [runId, { stream }] of runs) {
    if (runId === culprit) stream.push([brokenBy(reason)])
    else {
      const options = { isBlameless: runs.has(culprit) }
      stream.fail(new EngineThreadLostError(`the engine thread ended: ${reason}`, options))
    }
  }
}

function brokenBy(reason: string): EngineEvent & { type: 'failed' } {
  const message = `the job took the engine thread down, which was replaced: ${reason}`
  return {
    type: 'failed',
    failure: {
      code: 'node_execution_error',
      message,
      nodeId: null,
      classType: null,
      traceback: null,
      exceptionType: 'RuntimeError',
    },
  }
}

function handle(incarnation: Incarnation, message: Exclude<FromEngine, { type: 'ready' }>, log: Log): void {
  const live = incarnation.runs.get(message.runId)
  if (message.type === 'events') live?.stream.push(message.events)
  else if (message.type === 'reserve') void answerReserve(incarnation, message, live)
  else if (message.type === 'model_call') void answerModel(incarnation, message, { live, log })
  else {
    log.error({ detail: message.detail }, 'a run was ended by a defect of the engine')
    live?.stream.fail(new Error('the engine failed to run this graph'))
  }
}

async function answerReserve(
  incarnation: Incarnation,
  { requestId, subfolder, prefix, count }: Extract<FromEngine, { type: 'reserve' }>,
  live: LiveRun | undefined,
): Promise<void> {
  // A run that has ended has no use for numbers; a store that fails is reported by whoever owns it.
  const first = (await live?.reserveOutputNumbers(subfolder, prefix, count).catch(() => null)) ?? null
  send(incarnation, { type: 'numbers', requestId, first })
}

async function answerModel(
  incarnation: Incarnation,
  { requestId, call }: Extract<FromEngine, { type: 'model_call' }>,
  { live, log }: { readonly live: LiveRun | undefined; readonly log: Log },
): Promise<void> {
  // A run that has ended waits for no answer.
  if (live === undefined) return
  const answer = await answerModelCall(call, { runModel: live.runModel, signal: live.over.signal, log })
  send(incarnation, { type: 'model_answer', requestId, answer })
}

function send({ worker }: Incarnation, message: ToEngine): void {
  worker.postMessage(message)
}
