/**
 * The entry of the engine's process. It computes nothing: it starts the engine thread, passes messages between it and the program
 * that opened the engine, sets the cancel flags, and says what the process occupies. So it answers also while the engine thread
 * is at work, and what the threads have taken is given back to the machine, to the last byte, by the end of the process.
 */
import { rmSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { toHeapLimits } from '../../lib/threads/garbage.ts'
import {
  type CancelFlag,
  type EngineProcessData,
  type EngineThreadData,
  type FromEngine,
  type FromProcess,
  PULSE,
  type Pulse,
  type ToEngine,
  type ToProcess,
} from './protocol.ts'

// Values of all runs are bounded far below; whatever reaches this is a defect, and costs one thread instead of the process.
const HEAP_MB = 2048
const LOOK_MS = 250
// Less than this makes no difference to anybody.
const MEMORY_STEP_BYTES = 1_048_576

const newWords = (count: number) => new Int32Array(new SharedArrayBuffer(count * Int32Array.BYTES_PER_ELEMENT))
const post = (message: FromProcess, onSent?: () => void) => process.send?.(message, undefined, undefined, onSent)

/** One word per run: not zero once it is cancelled. */
const cancelFlags = new Map<number, CancelFlag>()
const pulse: Pulse = newWords(PULSE.words)
let worker: Worker | null = null
let asideFolder: string | null = null
let toldBytes = 0
let verdict: string | null = null

function open(data: EngineProcessData): void {
  asideFolder = data.asideFolder
  worker = new Worker(new URL('./engine-thread.ts', import.meta.url), {
    workerData: { ...data, pulse } satisfies EngineThreadData,
    resourceLimits: toHeapLimits(HEAP_MB),
  })
  let reason = 'it was stopped'
  worker.on('message', (message: FromEngine) => {
    if (message.type === 'ready') {
      watchPulse(data.nodeTimeoutMs)
      // What it occupies now is what later growth is measured by.
      reportMemory()
    }
    post(message)
  })
  worker.on('error', (error) => {
    reason = error.message
  })
  worker.on('exit', () => {
    const runAtWork = Atomics.load(pulse, PULSE.runAtWork) - 1
    post({ type: 'ended', reason: verdict ?? reason, runAtWork }, () => process.exit())
  })
  setInterval(reportMemory, LOOK_MS).unref()
}

function end(why: string): void {
  verdict ??= why
  void worker?.terminate()
}

function forward(message: Exclude<ToProcess, { type: 'open' | 'end' }>): void {
  if (message.type === 'run') {
    const { isCancelled, ...run } = message
    const cancelFlag = newWords(1)
    if (isCancelled) Atomics.store(cancelFlag, 0, 1)
    cancelFlags.set(run.runId, cancelFlag)
    worker?.postMessage({ ...run, cancelFlag } satisfies ToEngine)
    return
  }
  if (message.type === 'cancel') {
    const flag = cancelFlags.get(message.runId)
    if (flag !== undefined) Atomics.store(flag, 0, 1)
    cancelFlags.delete(message.runId)
  }
  worker?.postMessage(message satisfies ToEngine)
}

/** A node on the engine thread itself that does not come back holds up everybody: it gets the time that any node gets. */
function watchPulse(timeoutMs: number): void {
  let beats = Number.NaN
  let since = 0
  setInterval(() => {
    const now = performance.now()
    const seen = Atomics.load(pulse, PULSE.beats)
    if (seen !== beats) {
      beats = seen
      since = now
    } else if (now - since > timeoutMs) end(`a node did not finish within ${timeoutMs / 1000} s (setting nodeTimeout)`)
  }, LOOK_MS).unref()
}

function reportMemory(): void {
  const bytes = process.memoryUsage.rss()
  if (Math.abs(bytes - toldBytes) < MEMORY_STEP_BYTES) return
  toldBytes = bytes
  post({ type: 'memory', bytes })
}

// An interrupt from a terminal, or the stop of a unit, reaches every process of the group. Whoever opened the engine decides.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
process.on('disconnect', () => {
  // Nobody else is left to do it.
  if (asideFolder !== null) rmSync(asideFolder, { recursive: true, force: true })
  process.exit()
})
process.on('message', (message: ToProcess) => {
  if (message.type === 'open') open(message.data)
  else if (message.type === 'end') end(message.verdict)
  else forward(message)
})
