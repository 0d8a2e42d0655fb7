/**
 * The opener's end of the engine: starts its process with the first run, passes runs to it, and ends it with its threads and its
 * results once there has been no run for a while. It is ended much sooner when a run that failed or was cancelled has left it large:
 * what the runtime and libraries keep after they have freed it cannot be given back in another way. An engine that is lost is replaced
 * with the next run. One that does not answer an abort is ended as well. The run that it was working on fails; the others are lost
 * without fault and may be run again.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Log } from '../../lib/log.ts'
import { sleep } from '../../lib/waiting/sleep.ts'
import type { EngineEvent } from '../graph/run-event.ts'
import { weightOf } from '../run/run-state.ts'
import { answerModelCall, type RunModel } from './model-line.ts'
import type { EngineProcessData, FromEngine, FromProcess, RunMessage, ToProcess } from './protocol.ts'
import { EngineThreadLostError, RunStream, releaseFiles, toEngineEvent } from './run-stream.ts'

/**
 * Reserves `count` consecutive numbers for output files of one name prefix and returns the first. Two runs never get the same.
 */
export type ReserveOutputNumbers = (folder: string, prefix: string, count: number) => Promise<number>

interface ThreadRun extends Omit<RunMessage, 'type' | 'runId' | 'cancelFlag'> {
  readonly reserveOutputNumbers: ReserveOutputNumbers
  readonly runModel: RunModel | null
  readonly signal: AbortSignal
}

// One for all: an abort without a reason makes an error with a stack, for every run.
const RUN_OVER = new Error('the run is over')
// An abort is answered within milliseconds; a thread that takes this long will not answer any more.
const ABORT_ANSWER_MS = 10_000
const UNANSWERED = 'it did not answer an interrupt'
const RESTART_PAUSE_MS = 1_000
// A process that was told to end does so within milliseconds, unless a thread hangs in a library.
const END_MS = 5_000
// A cancelled call looks at its flag, and ends the programs that it started, within 200 ms.
const SETTLE_MS = 500
// A call that does not look is ended by its pool within seconds; until then it may take more.
const WASTE_MS = 10_000
// What an engine grows by in ordinary use: code, tables, small results that are kept; and each compute thread once it has worked.
const KEPT_BYTES = 50_331_648
const KEPT_BYTES_PER_THREAD = 25_165_824
// However many threads there are: a failed run leaves less than 100 MB behind.
const MAX_KEPT_BYTES = 96_468_992
// The runtime's flags that the process needs as well; a debugger's port and the like are for the opener alone.
const PASSED_FLAG = /^--(?:v8-pool-size=|disable-|no-|experimental-|enable-source-maps)/
// So that a large block that was freed goes back to the machine while the process goes on: left alone, the allocator keeps ever larger ones.
const ALLOCATOR = { MALLOC_MMAP_THRESHOLD_: '1048576', MALLOC_TRIM_THRESHOLD_: '1048576' }

interface LiveRun {
  readonly stream: RunStream
  readonly reserveOutputNumbers: ReserveOutputNumbers
  readonly runModel: RunModel | null
  /** Aborted when the run is cancelled, and when it has ended. */
  readonly over: AbortController
}

interface Incarnation {
  readonly process: ChildProcess
  readonly runs: Map<number, LiveRun>
  isEnded: boolean
  /** Ended because there was nothing to do. */
  isResting: boolean
  /** What it occupies now. */
  memoryBytes: number
  /** What it did when it was ready; null before that. */
  readyBytes: number | null
  readonly threads: number
  /** Until when the waste of a run that failed or was cancelled may show. */
  wasteSeenUntil: number
  /** The run that did not answer an interrupt; -1: none. */
  stuckRun: number
  /** Where it leaves large files for us; made when there is one, and removed when the process has ended. */
  readonly asideFolder: string
}

interface EngineThreadOptions {
  readonly data: Omit<EngineProcessData, 'asideFolder'>
  /** Of the process and of the programs that it starts; absent: ours. */
  readonly environment?: NodeJS.ProcessEnv
  /** How long the process stays after the last run. */
  readonly restMs: number
  readonly log: Log
}

export class EngineThreadLink {
  readonly #deps: EngineThreadOptions
  readonly #closing = new AbortController()
  #nextRunId = 0
  #current: Started | null = null
  #pause: Promise<void> = Promise.resolve()
  #rest: NodeJS.Timeout | undefined

  constructor(deps: EngineThreadOptions) {
    this.#deps = deps
  }

  async *run(threadRun: ThreadRun): AsyncGenerator<EngineEvent, void, undefined> {
    await this.#pause
    if (this.#closing.signal.aborted) throw new Error('the engine is closed')
    const { reserveOutputNumbers, runModel, signal, ...message } = threadRun
    const incarnation = this.#ensureThread()
    const runId = this.#nextRunId++
    const stream = new RunStream((weight) => send(incarnation, { type: 'taken', runId, weight }))
    const over = new AbortController()
    incarnation.runs.set(runId, { stream, reserveOutputNumbers, runModel, over })
    let stuck: NodeJS.Timeout | undefined
    const abort = () => {
      over.abort()
      send(incarnation, { type: 'cancel', runId })
      stuck = setTimeout(() => {
        incarnation.stuckRun = runId
        end(incarnation, UNANSWERED)
      }, ABORT_ANSWER_MS)
    }
    try {
      if (!signal.aborted) signal.addEventListener('abort', abort, { once: true })
      send(incarnation, { type: 'run', runId, isCancelled: signal.aborted, ...message })
      yield* stream.read()
    } finally {
      clearTimeout(stuck)
      over.abort(RUN_OVER)
      signal.removeEventListener('abort', abort)
      incarnation.runs.delete(runId)
      // A reader that leaves early ends the run; after its own end this changes nothing.
      send(incarnation, { type: 'cancel', runId })
      if (!stream.hasSucceeded) incarnation.wasteSeenUntil = performance.now() + WASTE_MS
      this.#restLater(incarnation)
    }
  }

  /** What its process occupies; 0 while there is none. */
  memoryBytes(): number {
    return this.#current?.incarnation.memoryBytes ?? 0
  }

  async close(): Promise<void> {
    this.#closing.abort()
    clearTimeout(this.#rest)
    if (this.#current !== null) end(this.#current.incarnation, 'it was stopped')
    await this.#current?.ended
  }

  #ensureThread(): Incarnation {
    if (this.#current !== null && !this.#current.incarnation.isEnded) return this.#current.incarnation
    const started = start(this.#deps)
    this.#current = started
    void started.ended.then((loss) => this.#onEnded(started, loss))
    return started.incarnation
  }

  #onEnded({ incarnation, startedAt }: Started, loss: Loss): void {
    const isWanted = this.#closing.signal.aborted || incarnation.isResting
    settleRuns(incarnation, isWanted ? { ...loss, runAtWork: -1 } : loss)
    if (isWanted) return
    this.#deps.log.error({ reason: loss.reason }, 'the engine thread ended; the next run starts another')
    // A thread that died at once would die again at once.
    if (performance.now() - startedAt < RESTART_PAUSE_MS) this.#pause = sleep(RESTART_PAUSE_MS, this.#closing.signal)
  }

  #restLater(incarnation: Incarnation): void {
    // The timer belongs to the process that is there now, which a late reader of an earlier one has nothing to do with.
    if (incarnation !== this.#current?.incarnation) return
    clearTimeout(this.#rest)
    if (incarnation.runs.size > 0) return
    const isSettling = performance.now() < incarnation.wasteSeenUntil
    const rested = () => {
      if (isSettling && !isLarge(incarnation)) this.#restLater(incarnation)
      else this.#retire(incarnation)
    }
    this.#rest = setTimeout(rested, isSettling ? SETTLE_MS : this.#deps.restMs)
    this.#rest.unref()
  }

  #retire(incarnation: Incarnation): void {
    if (incarnation.runs.size > 0 || incarnation !== this.#current?.incarnation) return
    // The next run starts another, also while this one is still on its way out.
    incarnation.isResting = true
    this.#current = null
    end(incarnation, 'it has nothing to do')
  }
}

interface Loss {
  readonly reason: string
  /** The run that the engine thread was working on; -1: none, or not known. */
  readonly runAtWork: number
}

interface Started {
  readonly incarnation: Incarnation
  readonly startedAt: number
  /** Resolves once the process is gone. */
  readonly ended: Promise<Loss>
}

function start({ data, environment, log }: EngineThreadOptions): Started {
  const child = fork(new URL('./engine-process.ts', import.meta.url), {
    execArgv: process.execArgv.filter((flag) => PASSED_FLAG.test(flag)),
    ...(environment !== undefined && { env: { ...ALLOCATOR, ...environment } }),
    serialization: 'advanced',
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const incarnation: Incarnation = {
    process: child,
    runs: new Map(),
    isEnded: false,
    isResting: false,
    memoryBytes: 0,
    readyBytes: null,
    threads: data.threads,
    wasteSeenUntil: Number.NEGATIVE_INFINITY,
    stuckRun: -1,
    asideFolder: join(tmpdir(), `atelier-engine-${randomUUID()}`),
  }
  let loss: Loss | null = null
  child.on('message', (message: FromProcess) => {
    if (message.type === 'ended') loss = message
    else handle(incarnation, message, log)
  })
  const ended = Promise.withResolvers<Loss>()
  async function finish(reason: string): Promise<void> {
    const { stuckRun, asideFolder } = incarnation
    incarnation.isEnded = true
    incarnation.memoryBytes = 0
    // What lies there belongs to messages that did not arrive.
    await rm(asideFolder, { recursive: true, force: true }).catch((error) => log.warn({ err: error }, 'files are left'))
    // One that had to be killed has no last words.
    ended.resolve(loss ?? { reason: stuckRun === -1 ? reason : UNANSWERED, runAtWork: stuckRun })
  }
  child.on('error', (error) => {
    // One that could not be started has no exit.
    if (child.pid === undefined) void finish(error.message)
  })
  // Its last words may be read after its end.
  const isRead = new Promise((resolve) => child.once('disconnect', resolve))
  child.on('exit', (code, signal) => void isRead.then(() => finish(`its process ended (${signal ?? code})`)))
  send(incarnation, { type: 'open', data: { ...data, asideFolder: incarnation.asideFolder } })
  return { incarnation, startedAt: performance.now(), ended: ended.promise }
}

/** A process whose threads hang is killed. */
function end(incarnation: Incarnation, verdict: string): void {
  send(incarnation, { type: 'end', verdict })
  setTimeout(() => incarnation.process.kill('SIGKILL'), END_MS).unref()
}

function isLarge({ memoryBytes, readyBytes, threads }: Incarnation): boolean {
  const keptBytes = Math.min(KEPT_BYTES + threads * KEPT_BYTES_PER_THREAD, MAX_KEPT_BYTES)
  return readyBytes !== null && memoryBytes > readyBytes + keptBytes
}

/** The engine is gone. Unless we wanted that, whoever it was working for fails; the others did nothing wrong. */
function settleRuns({ runs }: Incarnation, { reason, runAtWork }: Loss): void {
  for (const [runId, { stream }] of runs) {
    if (runId === runAtWork) {
      stream.push(failedWith('RuntimeError', `the job took the engine thread down, which was replaced: ${reason}`))
    } else {
      const options = { isBlameless: runs.has(runAtWork) }
      stream.fail(new EngineThreadLostError(`the engine thread ended: ${reason}`, options))
    }
  }
}

function failedWith(exceptionType: string, message: string): EngineEvent {
  return {
    type: 'failed',
    failure: {
      code: 'node_execution_error',
      message,
      nodeId: null,
      classType: null,
      traceback: null,
      exceptionType,
    },
  }
}

function handle(incarnation: Incarnation, message: Exclude<FromProcess, { type: 'ended' }>, log: Log): void {
  if (message.type === 'memory') incarnation.memoryBytes = message.bytes
  if (message.type === 'ready') incarnation.readyBytes = incarnation.memoryBytes
  if (message.type === 'memory' || message.type === 'ready') return
  const live = incarnation.runs.get(message.runId)
  if (message.type === 'events') receive(incarnation, message, live)
  else if (message.type === 'reserve') void answerReserve(incarnation, message, live)
  else if (message.type === 'model_call') void answerModel(incarnation, message, { live, log })
  else {
    log.error({ detail: message.detail }, 'a run was ended by a defect of the engine')
    live?.stream.fail(new Error('the engine failed to run this graph'))
  }
}

function receive(
  { asideFolder }: Incarnation,
  { events }: Extract<FromEngine, { type: 'events' }>,
  live: LiveRun | undefined,
): void {
  for (const event of events) {
    try {
      const received = toEngineEvent(event, asideFolder)
      if (live === undefined) releaseFiles(received)
      else live.stream.push(received, weightOf(event))
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      live?.stream.push(failedWith('OSError', `what a node made could not be read on this machine (${code})`))
    }
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

/** To a process that has ended, nothing is sent: its end is told elsewhere. */
function send({ process }: Incarnation, message: ToProcess): void {
  if (process.connected) process.send(message, () => {})
}
